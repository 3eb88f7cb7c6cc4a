import fc from "fast-check";
import { codePoint } from "../../test/support/code-point.ts";

/** A value of an unexpected type. */
export const dated = new Date(0);

/** Any value that an untyped caller may pass; values that are nearly valid are more frequent. */
export const anything: fc.Arbitrary<unknown> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom<unknown>(undefined, null, true, false, Number.NaN, Infinity, -Infinity),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom<unknown>(0, -0, 1, 9, 10, 11, -1, 1.5, 10_000, 2 ** 31 - 1, 2 ** 31, 1e300),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom<unknown>(
      "",
      "a",
      "10",
      "\ud800",
      "{",
      "}",
      "\u0000",
      " ",
      "x".repeat(2_000),
      "NaN",
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom<unknown>(
      ...[{}, [], [[]], [10], Symbol("s"), 10n, () => 5, dated, /x/, new Map(), new Uint8Array(3)],
      ...[{ addEventListener: () => undefined }, { aborted: true }, new AbortController(), { min: null }],
      ...[new AbortController().signal, AbortSignal.abort(new TypeError("aborted")), new EventTarget()],
      ...[{ waitUntil: 5 }, { waitUntil: () => undefined }, Object.create(null), Object.freeze({ min: 1 })],
    ),
  },
  { weight: 2, arbitrary: fc.double() },
  { weight: 2, arbitrary: fc.string({ unit: codePoint, maxLength: 40 }) },
  { weight: 2, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
  { weight: 1, arbitrary: fc.anything({ maxDepth: 2, withBigInt: true, withNullPrototype: true }) },
);
