/** What a key can hold. */
export type Value = string | Hash | SortedSet;

/** The fields of a hash. */
export class Hash extends Map<string, string> {}

/** Members with their scores. */
export class SortedSet extends Map<string, number> {}
