import fc from "fast-check";
import type { Command } from "../../src/index.ts";
import { parseCommand } from "./claims.ts";

// False answers of an endpoint, as plain data, so that a counterexample can be read.

/** One lie, or the truth. `execute`: the command is executed before it is answered. */
export interface Distortion {
  readonly execute: boolean;
  readonly kind: "truth" | "body" | "cut" | "flip" | "stall" | "break" | "hang" | "fail";
  /** For `body`: the text. `<value>`, `<key>` and `<secret>` are replaced by what the client has sent. */
  readonly body?: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** For `cut`, `flip` and `break`: where, as a share of the true body's bytes. */
  readonly at?: number;
  /** For `cut`: after so many bytes, but always before the last one. */
  readonly length?: number;
}

/** A body's text, with what the client has sent in place of `<value>`, `<key>` and `<secret>`. */
export function filled(text: string, command: Command, secret: string): string {
  const { value } = parseCommand(command);
  const key = String(command[command[0] === "SET" || command[0] === "DELEX" ? 1 : 3]);
  // A replacer, because `$` means something in a replacement.
  const replacements: Record<string, string> = { "<value>": value, "<key>": key, "<secret>": secret };
  return text.replaceAll(/<value>|<key>|<secret>/g, (name) =>
    JSON.stringify(replacements[name]).slice(1, -1),
  );
}

const word = fc.constantFrom(
  ...["OK", "ok", "<value>", "<key>", "<secret>", "", "0", "1", "nil", "null", "QUEUED", "T0s=", "true"],
  ...[
    "NOSCRIPT No matching script",
    "ERR syntax error",
    "WRONGPASS",
    "ERR <secret> <value>",
    "5",
    "1e3",
    "-1",
  ],
  ...["0x10", " 7 ", "9007199254740993", "1763714567890", "P1 t 1 -", "C1 t 1 - {}", "C1 t 1 - {", "\ud800"],
);
const number = fc.oneof(
  fc.constantFrom(0, 1, -1, -3, 1.5, 1e21, -1e21, 2 ** 53, 2 ** 53 - 1, 1e308, 2),
  fc.integer(),
);
const scalar = fc.oneof(
  { weight: 3, arbitrary: word },
  { weight: 2, arbitrary: number },
  fc.constantFrom<unknown>(null, true, false),
);

/** Shapes near the replies of the scripts. */
const nearScript = fc.oneof(
  fc.tuple(
    fc.constant("<value>"),
    fc.oneof(fc.constantFrom(0, 3), scalar),
    fc.oneof(fc.constantFrom("t", "f", "tf", "tt"), scalar, fc.array(scalar, { maxLength: 2 })),
  ),
  fc.tuple(fc.constant(0), fc.oneof(fc.constantFrom(1, 2), scalar), scalar, number, scalar),
  fc.tuple(scalar, scalar, scalar),
  fc.array(scalar, { maxLength: 4 }),
  fc.array(fc.array(scalar, { maxLength: 3 }), { maxLength: 2 }),
);
const result = fc.oneof(
  { weight: 3, arbitrary: scalar },
  { weight: 5, arbitrary: nearScript },
  fc.jsonValue(),
  fc.constantFrom<unknown>({ toString: 1 }, { result: "OK" }, [{ result: "OK" }], [[]], {}, [
    0,
    { toString: 1 },
  ]),
);

const reply = fc.oneof(
  { weight: 8, arbitrary: result.map((value) => JSON.stringify({ result: value })) },
  { weight: 2, arbitrary: result.map((value) => JSON.stringify({ error: value })) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom<unknown>("OK", null, 1, ["<value>", 3, "7"]), scalar, fc.boolean())
      .map(([value, error, first]) =>
        JSON.stringify(first ? { error, result: value } : { result: value, error }),
      ),
  },
  { weight: 1, arbitrary: fc.jsonValue().map((value) => JSON.stringify(value)) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      ...["", " ", "OK", '"OK"', "null", "[]", "{}", "{", '{"result"', "NaN", '{"result":NaN}', "undefined"],
      ...['{"__proto__":{"result":"OK"}}', '{"constructor":{"result":"OK"}}', '[{"result":"OK"}]'],
      ...['{"Result":"OK"}', '{"result":"OK"}{"result":"OK"}', '{"result":"OK"},', '{"result":"OK"} x'],
      ...[
        "<html><body>OK</body></html>",
        "+OK\r\n",
        '{"result":"OK","__proto__":{"error":1}}',
        '{result:"OK"}',
      ],
    ),
  },
);

const headers = fc.constantFrom<Record<string, string>>(
  ...[{}, {}, {}, { "content-length": "1" }, { "content-length": "-1" }, { "content-length": "1e9" }],
  ...[{ "content-encoding": "gzip" }, { "content-type": "text/html" }, { "content-length": "x" }],
);
const status = fc.oneof(
  { weight: 5, arbitrary: fc.constant(200) },
  { weight: 2, arbitrary: fc.constantFrom(400, 500, 204, 301, 201, 206, 299, 401, 429, 502) },
);
const share = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const execute = fc.boolean();

/** Any answer to one request. */
export const distortion: fc.Arbitrary<Distortion> = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Distortion>({ execute: true, kind: "truth" }) },
  {
    weight: 10,
    arbitrary: fc.record({ execute, kind: fc.constant("body" as const), body: reply, status, headers }),
  },
  // The truth under another status.
  { weight: 1, arbitrary: fc.record({ execute, kind: fc.constant("truth" as const), status, headers }) },
  { weight: 3, arbitrary: fc.record({ execute, kind: fc.constantFrom("cut", "flip", "break"), at: share }) },
  { weight: 1, arbitrary: fc.record({ execute, kind: fc.constantFrom("stall", "hang", "fail") }) },
);

/** The answers of one endpoint, request by request and again from the beginning; `undefined`: always the truth. */
export const answers: fc.Arbitrary<readonly Distortion[] | undefined> = fc.option(
  fc.array(distortion, { minLength: 1, maxLength: 6 }),
  { nil: undefined, freq: 2 },
);
