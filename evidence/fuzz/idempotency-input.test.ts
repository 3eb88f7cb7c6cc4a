import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { Idempotency, type Outcome, type RunContext, type RunOptions } from "../../src/idempotency/index.ts";
import { isRedlockError, Redlock } from "../../src/index.ts";
import { codePoint } from "../../test/support/code-point.ts";
import { seeded } from "../../test/support/seeded.ts";
import { forbidUnhandledRejections } from "../../test/support/unhandled.ts";
import { expectTyped } from "./messages.ts";
import { type Network, openNetwork } from "./network.ts";
import { anything } from "./values.ts";

const native = globalThis.fetch;
afterAll(() => {
  globalThis.fetch = native;
});

function open(count = 1): { network: Network; idempotency: Idempotency; records: () => string[] } {
  const liars = new Array(count).fill(undefined);
  const network = openNetwork({ dialect: "upstash", transport: "http", liars });
  const { endpoints, runtime, engines } = network;
  const idempotency = new Idempotency(new Redlock({ endpoints, runtime }));
  const records = () => engines.flatMap((engine) => engine.execute(["KEYS", "*"]) as string[]);
  return { network, idempotency, records };
}

/** Texts of all kinds, with lone surrogates and with characters that a delimiter could be confused with. */
const text = fc.oneof(
  fc.string({
    unit: fc.constantFrom("\ud800", "\udc00", "\ufffd", "\u0000", '"', ",", "[", "]", "\\", "a", ":", "/"),
  }),
  fc.string({ unit: codePoint }),
  fc.constantFrom("", "a".repeat(100_000), "\u0000", "\ud83d\ude00", "__proto__"),
);
const part = text.filter((given) => given !== "");
const scope = fc.option(fc.oneof(part, fc.array(part, { minLength: 1, maxLength: 3 })), { nil: undefined });

/** Expects the error of a duplicate whose run could not store its result. */
function expectUnavailable(outcome: object, reason: string): void {
  expect(outcome).toMatchObject({ error: { code: "RESULT_UNAVAILABLE", key: "key", reason } });
}

/** Whether a codec may return this. */
function isText(given: unknown): boolean {
  return typeof given === "string" && !/\p{Surrogate}/u.test(given);
}

describe("idempotency with arguments of any type", () => {
  forbidUnhandledRejections();

  test("equal scopes and keys share a record, different ones never do", async () => {
    const name = fc.record({ scope, key: text });
    await fc.assert(
      fc.asyncProperty(name, name, async (first, second) => {
        fc.pre(first.key !== "" && second.key !== "");
        const { network, idempotency, records } = open();
        const run = async ({ key, scope }: typeof first, value: number) => {
          const outcome = await network.runtime.outcomeOf(() => idempotency.run(key, { scope }, () => value));
          if ("error" in outcome) throw outcome.error;
          return outcome.value;
        };
        const nameOf = ({ key, scope = [] }: typeof first) => JSON.stringify([scope, key]);
        const same = nameOf(first) === nameOf(second);
        expect(await run(first, 1)).toEqual({ status: "executed", value: 1 });
        expect(await run(second, 2)).toEqual(
          same ? { status: "replayed", value: 1 } : { status: "executed", value: 2 },
        );
        expect(await run(first, 3)).toEqual({ status: "replayed", value: 1 });
        expect(records()).toHaveLength(same ? 1 : 2);
      }),
      seeded(40),
    );
  });

  test("a fingerprint of any content is recognised, and another is refused", async () => {
    const content = fc.oneof(
      fc.string({ unit: codePoint }),
      fc.uint8Array(),
      fc.constant("a".repeat(100_000)),
    );
    const bytes = (given: string | Uint8Array) =>
      typeof given === "string" ? Buffer.from(given) : Buffer.from(given);
    await fc.assert(
      fc.asyncProperty(content, content, async (first, second) => {
        const { network, idempotency } = open();
        const run = (fingerprint: string | Uint8Array) =>
          network.runtime.outcomeOf(() => idempotency.run("key", { fingerprint }, () => 1));
        expect(await run(first)).toEqual({ value: { status: "executed", value: 1 } });
        const again = await run(second);
        if (bytes(first).equals(bytes(second)))
          expect(again).toEqual({ value: { status: "replayed", value: 1 } });
        else expectTyped((again as { error: unknown }).error, "FINGERPRINT_MISMATCH");
      }),
      seeded(30),
    );
  });

  const option = fc.constantFrom(
    ...["lease", "retention", "wait", "maxHold", "timeout", "backoff", "waitUntil", "onEvent"],
    ...["scope", "fingerprint", "codec", "signal", "deadline"],
  );
  const codec = fc.record({ encode: anything, decode: anything }, { requiredKeys: [] });
  const options = fc.oneof(
    { weight: 6, arbitrary: fc.dictionary(option, anything, { maxKeys: 3, noNullPrototype: true }) },
    { weight: 2, arbitrary: codec.map((given) => ({ codec: given })) },
    { weight: 1, arbitrary: anything },
  );

  test("options of any type are refused before the handler runs, or work", async () => {
    const seen = { refused: 0, worked: 0 };
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.constant("key"), anything), options, async (key, given) => {
        const { network, idempotency, records } = open();
        const { runtime, exchanges } = network;
        let runs = 0;
        const call = () => idempotency.run(key as string, given as RunOptions<unknown>, () => ++runs);
        const outcome = await runtime.outcomeOf(call);
        if ("value" in outcome) {
          seen.worked += 1;
          // A value that the codec cannot encode is not stored, but its effect has happened.
          expect(outcome.value).toMatchObject({ status: "executed", value: 1 });
          expect(records().length).toBeGreaterThan(0);
          return;
        }
        const { error } = outcome;
        expect(runs, String(error)).toBe(0);
        expect(records()).toEqual([]);
        if (isRedlockError(error)) expectTyped(error, "NO_QUORUM");
        else {
          expect(error instanceof TypeError || error instanceof RangeError, String(error)).toBe(true);
          expect(exchanges).toEqual([]);
          seen.refused += 1;
        }
        await runtime.advance(1_000);
      }),
      seeded<[unknown, unknown]>(200, [
        ["key", { codec: 5 }],
        ["key", { codec: null }],
        ["key", { codec: {} }],
        ["key", { codec: { encode: JSON.stringify } }],
        ["key", { codec: { decode: JSON.parse } }],
        ["key", { signal: { addEventListener: () => undefined } }],
      ]),
    );
    for (const [what, times] of Object.entries(seen)) expect(times, what).toBeGreaterThan(0);
  });

  test("a text result is replayed unchanged; any other is unavailable, and never run again", async () => {
    const encoded = fc.oneof(
      { weight: 3, arbitrary: text as fc.Arbitrary<unknown> },
      { weight: 1, arbitrary: anything },
    );
    await fc.assert(
      fc.asyncProperty(encoded, async (given) => {
        const { network, idempotency, records } = open();
        const { runtime } = network;
        const codec = { encode: () => given as string, decode: (stored: string): unknown => stored };
        const first = await runtime.outcomeOf(() => idempotency.run("key", { codec }, () => given));
        expect(first).toMatchObject({ value: { status: "executed" } });
        expect(records()).toHaveLength(1);
        const replayed = await runtime.outcomeOf(() => idempotency.run("key", { codec }, () => "another"));
        const { unstored } = (first as { value: { unstored?: string } }).value;
        expect(unstored).toBe(isText(given) ? undefined : "unserializable");
        if (unstored) return expectUnavailable(replayed, unstored);
        expect(replayed).toEqual({ value: { status: "replayed", value: given } });
      }),
      seeded<[unknown]>(100, [[undefined], [5], [null], ["\ud800"], [{}]]),
    );
  });

  test("a result is replayed as its JSON; one without JSON is unavailable, and never run again", async () => {
    const cyclic: unknown[] = [];
    cyclic.push(cyclic);
    await fc.assert(
      fc.asyncProperty(fc.oneof(anything, fc.jsonValue(), text), async (given) => {
        const { network, idempotency, records } = open();
        const { runtime } = network;
        const first = await runtime.outcomeOf(() => idempotency.run("key", () => given));
        const { status, value, unstored } = (first as { value: Outcome<unknown> }).value;
        expect(status).toBe("executed");
        expect(records()).toHaveLength(1);
        const replayed = await runtime.outcomeOf(() => idempotency.run("key", () => "another"));
        if (unstored) {
          expect(value).toBe(given);
          return expectUnavailable(replayed, unstored);
        }
        const expected = given === undefined ? undefined : JSON.parse(JSON.stringify(given));
        expect(value).toEqual(expected);
        expect(replayed).toEqual({ value: { status: "replayed", value: expected } });
      }),
      seeded<[unknown]>(100, [[cyclic], [undefined], ["\ud800"], [{ toJSON: () => undefined }], [10n]]),
    );
  });

  test("the caller gets what the handler throws, and the key is free again", async () => {
    const how = fc.constantFrom("throws", "rejects");
    await fc.assert(
      fc.asyncProperty(anything, how, async (thrown, way) => {
        const { network, idempotency, records } = open(3);
        const handler = async ({ signal }: RunContext) => {
          if (!signal.aborted) throw thrown;
        };
        const sync = () => {
          throw thrown;
        };
        const call = () => idempotency.run("key", way === "throws" ? sync : handler);
        const outcome = await network.runtime.outcomeOf(call);
        expect(outcome).toEqual({ error: thrown });
        expect(records()).toEqual([]);
      }),
      seeded<[unknown, "throws" | "rejects"]>(80, [
        [undefined, "throws"],
        [undefined, "rejects"],
        [Object.freeze(new Error("frozen")), "rejects"],
      ]),
    );
  });
});
