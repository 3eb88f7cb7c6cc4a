import fc from "fast-check";

/**
 * Any code point that is not a surrogate, as a unit of strings. The same as fast-check's `"binary"`, which makes a table of
 * them all: a second of CPU in each worker.
 */
export const codePoint: fc.Arbitrary<string> = fc
  .nat(0x10ffff - 0x800)
  .map((nth) => String.fromCodePoint(nth < 0xd800 ? nth : nth + 0x800));
