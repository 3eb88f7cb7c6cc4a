import fc from "fast-check";

/** One false answer, as plain data, so that a counterexample can be read. */
export interface Lie {
  /** Whether the command is executed before it is answered. */
  readonly executes: boolean;
  /** `whole`: another answer. `cut` and `broken`: only the beginning of the true one. `silent`: none. */
  readonly kind: "whole" | "cut" | "broken" | "silent";
  /** Its status, and its body in place of the true one's. */
  readonly status?: number;
  readonly body?: string;
  /** Where the true body ends, as a share of its length. */
  readonly at?: number;
}

/** Answers of scripts and commands: what is not among them is no answer. */
const isWord = (value: unknown) =>
  value === null || value === "OK" || value === 0 || value === 1 || (Array.isArray(value) && value[0] === 0);

/** Values that a careless client may take for an answer. */
const near = fc.constantFrom<unknown>(
  ...["ok", "nil", "null", "QUEUED", "1", "0", "t", "tt", "true", "NOSCRIPT No matching script"],
  ...[true, false, -1, 2, 1.5, 1e308, 2 ** 53, "9007199254740993", "\ud800", "C1 t 1 -", "P1 t 1"],
  ...[{}, { toString: 1 }, { result: "OK" }, [], [[]], ["OK"], [1, 1], ["t", "t"], ["tother", "7"]],
  ...[
    ["tother", 3, true],
    ["0", 1, 9, "x"],
    [1, 1, 9, "x"],
    [true, 1, 9, "x"],
  ],
);
const value = fc.oneof(
  { weight: 3, arbitrary: near },
  fc.jsonValue({ maxDepth: 2 }).filter((given) => !isWord(given)),
);

const body = fc.oneof(
  { weight: 6, arbitrary: value.map((result) => JSON.stringify({ result })) },
  { weight: 2, arbitrary: value.map((error) => JSON.stringify({ error })) },
  { weight: 1, arbitrary: value.map((error) => JSON.stringify({ result: "OK", error })) },
  // With a member `result` it would be an answer.
  {
    weight: 1,
    arbitrary: value
      .filter((given) => Object(given).result === undefined)
      .map((given) => JSON.stringify(given)),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      ...["", " ", "OK", '"OK"', "null", "[]", "{}", "{", '{"result"', "NaN", '{"result":NaN}', "undefined"],
      ...['{"__proto__":{"result":"OK"}}', '{"constructor":{"result":"OK"}}', '[{"result":"OK"}]'],
      ...['{"Result":"OK"}', '{"result":"OK"}{"result":"OK"}', '{"result":"OK"},', '{"result":"OK"} x'],
      ...["<html><body>OK</body></html>", "+OK\r\n", '{result:"OK"}'],
    ),
  },
);
const status = fc.constantFrom(201, 204, 206, 299, 301, 400, 401, 429, 500, 502);
const share = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

const lie = fc
  .oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant("whole" as const), body }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("whole" as const), status }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("whole" as const), status, body }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom("cut", "broken"), at: share }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("silent" as const) }) },
  )
  .chain((given) => fc.boolean().map((executes): Lie => ({ ...given, executes })));

/** The answers of one endpoint, request by request and again from the beginning. */
export const lies: fc.Arbitrary<readonly Lie[]> = fc.array(lie, { minLength: 1, maxLength: 6 });
