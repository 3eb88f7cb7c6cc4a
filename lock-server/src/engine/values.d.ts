/** What a key can hold. */
export type Value = string | Hash | SortedSet;
/** The fields of a hash. */
export declare class Hash extends Map<string, string> {}
/** Members with their scores. */
export declare class SortedSet extends Map<string, number> {}
