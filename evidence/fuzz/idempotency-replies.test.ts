import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { fingerprintOf, hashKey } from "../../src/idempotency/digest.ts";
import { Idempotency, type IdempotencyEvent, type Outcome as Ran } from "../../src/idempotency/index.ts";
import { noFingerprint, parseRecord, recordText } from "../../src/idempotency/record.ts";
import { Redlock } from "../../src/index.ts";
import { seeded } from "../../test/support/seeded.ts";
import { forbidUnhandledRejections } from "../../test/support/unhandled.ts";
import { keyOf, quorumOf } from "../sim/field.ts";
import { answers } from "./garbage.ts";
import { expectNoSecret, expectTyped } from "./messages.ts";
import { type Exchange, type Network, type NetworkOptions, openNetwork } from "./network.ts";
import type { Outcome } from "./virtual-runtime.ts";

const native = globalThis.fetch;
afterAll(() => {
  globalThis.fetch = native;
});

const token = `t${"0123456789abcdef".repeat(2)}`;
const at = 1_763_714_000_000;
const prints = {
  none: noFingerprint,
  mine: await fingerprintOf("mine"),
  other: await fingerprintOf("other"),
};
const recordKey = keyOf("idem", await hashKey([], "key"));
const print = fc.constantFrom<keyof typeof prints>("none", "mine", "other");

/** The record that every endpoint has at the key when the run begins. */
const stored = fc.oneof(
  { weight: 3, arbitrary: fc.constant(undefined) },
  {
    weight: 2,
    arbitrary: print.map((name) => recordText({ state: "pending", token, at, fingerprint: prints[name] })),
  },
  {
    weight: 2,
    arbitrary: print.map((name) =>
      recordText({ state: "complete", token, at, fingerprint: prints[name], result: '{"n":1}' }),
    ),
  },
  {
    weight: 1,
    arbitrary: print.map((name) =>
      recordText({ state: "complete", token, at, fingerprint: prints[name], unstored: "too-large" }),
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom("", "null", "C1", "P1 t 1", `C1 ${token} 5 - {"n`, "{}", "5") },
);

interface Scenario extends NetworkOptions {
  readonly stored: string | undefined;
  readonly fingerprint: keyof typeof prints;
  readonly handler: "returns" | "throws" | "is slow" | "has no JSON";
  readonly wait: number;
}

const scenario: fc.Arbitrary<Scenario> = fc.record({
  dialect: fc.constantFrom("upstash", "redis-8.4", "redis"),
  transport: fc.constantFrom("http", "http", "sdk"),
  liars: fc.oneof(fc.tuple(answers), fc.tuple(answers, answers, answers)),
  stored,
  fingerprint: print,
  handler: fc.constantFrom("returns", "throws", "is slow", "has no JSON"),
  wait: fc.constantFrom(0, 0, 1_500),
});

const thrown = new Error("the handler's own");
const seen: Record<string, number> = {};

function countOf(said: readonly Exchange[], fits: (exchange: Exchange) => boolean): number {
  return new Set(said.filter(fits).map(({ endpoint }) => endpoint)).size;
}

/** A scenario that has been played, and what was observed. */
interface Played {
  readonly given: Scenario;
  readonly network: Network;
  readonly outcome: Outcome<Ran<unknown>>;
  /** The tokens of the handlers that began. */
  readonly began: readonly string[];
  /** The records of other runs that endpoints returned. */
  readonly shown: readonly string[];
}

async function play(given: Scenario): Promise<void> {
  const network = openNetwork(given);
  const { runtime, endpoints, engines, exchanges, secrets } = network;
  if (given.stored !== undefined) {
    for (const engine of engines) engine.execute(["SET", recordKey, given.stored, "PX", 30_000]);
  }
  const events: IdempotencyEvent[] = [];
  const idempotency = new Idempotency(new Redlock({ endpoints, runtime }), {
    wait: given.wait,
    onEvent: (event) => events.push(event),
  });
  const began: string[] = [];
  const fingerprint = given.fingerprint === "none" ? undefined : given.fingerprint;
  network.lying = true;
  const outcome = await runtime.outcomeOf(() =>
    idempotency.run<unknown>("key", { fingerprint }, async (context) => {
      began.push(context.token);
      if (given.handler === "is slow") {
        await new Promise<void>((resolve) => runtime.timer(20_000, resolve));
      }
      if (given.handler === "throws") throw thrown;
      return given.handler === "has no JSON" ? () => 1 : { n: 2 };
    }),
  );
  const shown = exchanges.flatMap(({ said, other }) => (said === "no" && other !== undefined ? [other] : []));
  const played: Played = { given, network, outcome, began, shown };
  expectBegunByQuorum(played);
  const result =
    "value" in outcome ? expectRight(played, outcome.value) : expectRightError(played, outcome.error);
  seen[result] = (seen[result] ?? 0) + 1;
  if (events.some(({ type }) => type === "executed")) expectStoredByQuorum(played);
  await runtime.advance(40_000);
  const errors = "error" in outcome && outcome.error !== thrown ? [outcome.error] : [];
  expectNoSecret([...errors, events], secrets);
}

/** A handler runs at most once, and only if a quorum granted its claim. */
function expectBegunByQuorum({ network: { endpoints, exchanges }, began }: Played): void {
  expect(began.length).toBeLessThanOrEqual(1);
  for (const run of began) {
    const begun = countOf(
      exchanges,
      ({ op, said, newValue }) =>
        (op === "read" || op === "claim") && said === "yes" && newValue.startsWith(`P1 ${run} `),
    );
    expect(begun, "the handler ran without a quorum").toBeGreaterThanOrEqual(quorumOf(endpoints.length));
  }
}

/** A result counts as stored only if a quorum said so, or showed it, because the answer that said so was lost. */
function expectStoredByQuorum({ network: { endpoints, exchanges }, began }: Played): void {
  const complete = ({ said, newValue, other }: Exchange) =>
    newValue.startsWith(`C1 ${began[0]} `) && (said === "yes" || other === newValue);
  const quorum = quorumOf(endpoints.length);
  expect(countOf(exchanges, complete), "stored, and no quorum said so").toBeGreaterThanOrEqual(quorum);
}

/** A value is the handler's own, or one that endpoints returned. */
function expectRight({ given, network, began, shown }: Played, ran: Ran<unknown>): string {
  const { endpoints, exchanges } = network;
  const { status, value, unstored } = ran;
  if (status === "executed") {
    expect(began).toHaveLength(1);
    // The effect has happened: a value without JSON completes its key, too.
    if (given.handler === "has no JSON") expect(["unserializable", "no-quorum"]).toContain(unstored);
    else expect(value).toEqual({ n: 2 });
    return status;
  }
  expect(began).toHaveLength(0);
  // A run's result on so many endpoints that no other can ever reach a quorum.
  const decided = shown.filter(
    (text) =>
      isDeepStrictEqual(resultIn(text), { value }) &&
      countOf(exchanges, ({ said, other, newValue }) =>
        said === "no" ? other === text : said === "yes" && newValue === text,
      ) >
        endpoints.length - quorumOf(endpoints.length),
  );
  expect(decided.length, "a replay that nobody showed").toBeGreaterThan(0);
  return status;
}

/** An error is the handler's own, or a typed one with a reason that endpoints returned. */
function expectRightError({ given, began, shown }: Played, error: unknown): string {
  if (error === thrown) {
    expect(began).toHaveLength(1);
    expect(given.handler).toBe("throws");
    return "failed";
  }
  expectTyped(
    error,
    "IN_PROGRESS",
    "FINGERPRINT_MISMATCH",
    "LEASE_LOST",
    "RECORD_CORRUPT",
    "NO_QUORUM",
    "RESULT_UNAVAILABLE",
  );
  const { code } = error as { code: string };
  expect(began).toHaveLength(code === "LEASE_LOST" ? 1 : 0);
  const others = shown.map((text) => parseRecord(text));
  if (code === "FINGERPRINT_MISMATCH") {
    const differs = others.some((record) => record && record.fingerprint !== prints[given.fingerprint]);
    expect(differs, "a mismatch that nobody showed").toBe(true);
  }
  if (code === "IN_PROGRESS") expect(others.some((record) => record)).toBe(true);
  if (code === "RECORD_CORRUPT") expect(shown.length).toBeGreaterThan(0);
  return code;
}

describe("idempotency over endpoints that answer anything", () => {
  forbidUnhandledRejections();

  test("runs a handler only with a quorum, replays only returned results, and fails with typed errors", async () => {
    const { seed, numRuns } = seeded(60);
    const missing = () =>
      [
        "executed",
        "replayed",
        "failed",
        "IN_PROGRESS",
        "FINGERPRINT_MISMATCH",
        "NO_QUORUM",
        "RECORD_CORRUPT",
      ].filter((what) => seen[what] === undefined);
    // Sixty runs may lack one of these outcomes.
    for (let batch = 0; batch === 0 || (batch < 10 && missing().length > 0); batch += 1) {
      await fc.assert(fc.asyncProperty(scenario, play), { seed: seed + batch, numRuns });
    }
    expect(missing()).toEqual([]);
  });

  /** Makes a run where the endpoints `where` have `text` at its key. */
  async function runOver(text: string, where: readonly boolean[], fingerprint?: string) {
    const liars = where.map(() => undefined);
    const { runtime, endpoints, engines } = openNetwork({ dialect: "upstash", transport: "http", liars });
    engines.forEach((engine, index) => {
      if (where[index]) engine.execute(["SET", recordKey, text, "PX", 30_000]);
    });
    let runs = 0;
    const idempotency = new Idempotency(new Redlock({ endpoints, runtime }));
    const outcome = await runtime.outcomeOf(() => idempotency.run("key", { fingerprint }, () => ++runs));
    const stands = () => engines.map((engine) => engine.execute(["GET", recordKey]));
    await runtime.advance(5_000);
    return { outcome, runs: () => runs, stands };
  }

  const { mine } = prints;
  const whole = [
    recordText({ state: "pending", token, at, fingerprint: noFingerprint }),
    recordText({ state: "pending", token, at, fingerprint: mine }),
    recordText({ state: "complete", token, at, fingerprint: noFingerprint, result: '{"n":1}' }),
    recordText({ state: "complete", token, at, fingerprint: mine, result: '{"n":1}' }),
    recordText({ state: "complete", token, at, fingerprint: mine, unstored: "unserializable" }),
  ];

  test.each(whole)("no truncation of %s runs the handler again", async (text) => {
    for (const where of [[true], [true, true, false]]) {
      for (let length = 0; length < text.length; length++) {
        const cut = text.slice(0, length);
        const { outcome, runs, stands } = await runOver(cut, where, "mine");
        expect(runs(), cut).toBe(0);
        // A record without a value has an empty text: only such a one can be a truncation of another.
        if (/ $/.test(cut) && parseRecord(cut)) continue;
        expect(stands(), cut).toEqual(where.map((there) => (there ? cut : null)));
        expect(outcome, cut).toHaveProperty("error");
        expectTyped(
          (outcome as { error: unknown }).error,
          "RECORD_CORRUPT",
          "FINGERPRINT_MISMATCH",
          "IN_PROGRESS",
        );
      }
    }
  });
});

/** The value in a record of the default codec; undefined: it has none. */
function resultIn(text: string): { readonly value: unknown } | undefined {
  const record = parseRecord(text);
  if (record?.state !== "complete" || record.result === undefined) return undefined;
  try {
    return { value: record.result === "" ? undefined : JSON.parse(record.result) };
  } catch {
    return undefined;
  }
}
