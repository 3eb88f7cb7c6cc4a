import fc from "fast-check";

// The words and helpers that the arbitraries of commands share.

/** A word of a command. */
export type Word = string | number;
/** A command, or some words of one. */
export type Command = readonly Word[];

export const key: fc.Arbitrary<Word> = fc.constantFrom("a", "b", "c");
export const field: fc.Arbitrary<Word> = fc.constantFrom("f", "g", "1", "é");
export const integer: fc.Arbitrary<Word> = fc.oneof(
  fc.constantFrom(0, 1, -1, 2, -2, 5, 100),
  fc.constantFrom(
    "9223372036854775807",
    "-9223372036854775808",
    "9007199254740993",
    "x",
    "",
    "1.5",
    "+1",
    "01",
    " 1",
  ),
);
export const index: fc.Arbitrary<Word> = fc.constantFrom(0, 1, 2, 3, -1, -2, -3, 10, -10, "x", "1.5");
export const value: fc.Arbitrary<Word> = fc.oneof(
  fc.constantFrom(
    "",
    "v",
    "hello",
    "é€",
    "1",
    "-5",
    "12",
    "1.5",
    "0.1",
    "1e3",
    "9223372036854775806",
    "nan",
    " 1",
  ),
  fc.string({ maxLength: 6, unit: "grapheme" }),
);

/** A command: `name` in upper or lower case, then one word of each arbitrary. */
export function command(
  name: string,
  ...words: readonly fc.Arbitrary<Word | Command>[]
): fc.Arbitrary<Command> {
  const cased = fc.constantFrom(name, name.toLowerCase());
  return fc.tuple(cased, ...words).map((parts) => (parts as (Word | Command)[]).flat() as Command);
}

/** Up to `most` words or groups of words. */
export function some(arbitrary: fc.Arbitrary<Word | Command>, most = 3): fc.Arbitrary<Command> {
  return fc.array(arbitrary, { maxLength: most }).map((words) => words.flat() as Command);
}

/** Nothing, or one word of each arbitrary. */
export function optional(...words: readonly fc.Arbitrary<Word>[]): fc.Arbitrary<Command> {
  return fc.oneof(fc.constant([]), fc.tuple(...words));
}

/** One of some words. */
export function word(...words: readonly Word[]): fc.Arbitrary<Word> {
  return fc.constantFrom(...words);
}
