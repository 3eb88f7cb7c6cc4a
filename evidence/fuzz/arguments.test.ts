import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { handoff, type LockJSON, resume } from "../../src/handoff/index.ts";
import { Idempotency, type Outcome, type RunOptions } from "../../src/idempotency/index.ts";
import {
  isRedlockError,
  type Lock,
  type QuorumError,
  Redlock,
  type RedlockOptions,
} from "../../src/index.ts";
import { forceRelease, inspect } from "../../src/inspect/index.ts";
import { codePoint } from "../../test/support/code-point.ts";
import { seeded } from "../../test/support/seeded.ts";
import { forbidUnhandledRejections } from "../../test/support/unhandled.ts";
import { expectMisuse, expectTyped } from "./messages.ts";
import { type Network, openNetwork } from "./network.ts";
import { anything, dated } from "./values.ts";

const native = globalThis.fetch;
afterAll(() => {
  globalThis.fetch = native;
});

const names = ["ttl", "wait", "timeout", "driftFactor", "backoff", "fencing", "prefix"];
const option = fc.constantFrom(
  ...names,
  ...["waitUntil", "autoExtend", "maxHold", "onEvent", "signal", "deadline", "note"],
);
const backoff = fc.record({ min: anything, max: anything }, { requiredKeys: [] });
const options = fc.oneof(
  { weight: 6, arbitrary: fc.dictionary(option, anything, { maxKeys: 3, noNullPrototype: true }) },
  { weight: 1, arbitrary: backoff.map((bounds) => ({ backoff: bounds, wait: 300 })) },
  { weight: 1, arbitrary: anything },
);
const resource = fc.oneof(
  { weight: 4, arbitrary: fc.constant<unknown>("a") },
  { weight: 2, arbitrary: anything },
  { weight: 2, arbitrary: fc.array(fc.oneof(fc.constant("a"), anything), { maxLength: 3 }) },
  { weight: 1, arbitrary: fc.string({ unit: codePoint, maxLength: 1_100 }) },
);

const seen = { refused: 0, worked: 0 };

function open(): { network: Network; redlock: Redlock } {
  const network = openNetwork({ dialect: "redis", transport: "http", liars: [undefined] });
  const { endpoints, runtime } = network;
  return { network, redlock: new Redlock({ endpoints, runtime }) };
}

/** Misuse must be refused at once, before anything is sent. */
async function expectRefusedOrRight(
  network: Network,
  call: () => Promise<unknown>,
  codes: string[],
): Promise<unknown> {
  const { runtime, exchanges } = network;
  const before = exchanges.length;
  const began = runtime.now();
  const outcome = await runtime.outcomeOf(call);
  if ("value" in outcome) {
    seen.worked += 1;
    return outcome.value;
  }
  const { error } = outcome;
  if (error instanceof TypeError || error instanceof RangeError) {
    expect(exchanges.length, String(error)).toBe(before);
    expect(runtime.now()).toBe(began);
    seen.refused += 1;
  } else expectTyped(error, ...codes);
  return undefined;
}

/** Resumes a lock's JSON with changes. It is refused, or extends and frees nothing but the lock's own keys. */
async function resumeChanged(change: unknown): Promise<void> {
  const { network, redlock } = open();
  const { runtime, engines } = network;
  await runtime.outcomeOf(() => redlock.acquire("b", { fencing: true }));
  const acquired = await runtime.outcomeOf(() => redlock.acquire("a", { fencing: true }));
  const { value: lock } = acquired as { value: Lock };
  const keys = ["redlock:lock:{a}", "redlock:lock:{b}"] as const;
  const values = () => keys.map((key) => engines[0]!.execute(["GET", key]));
  const before = values();
  const value = values()[0] as string;
  const handed = await runtime.outcomeOf(() => handoff(lock));
  const given = changed((handed as { value: LockJSON }).value, change);
  const resuming = () => resume(redlock, given);
  const resumed = (await expectRefusedOrRight(network, resuming, ["LOCK_LOST"])) as Lock | undefined;
  if (!resumed) {
    expect(values()).toEqual(before);
    return;
  }
  expectLockJSON(given);
  // Only the lock with the nonce of the message is found, and gets another one.
  expect(given.value).toBe(value);
  expect(values()).toEqual([resumed.token, before[1]]);
  const held = values();
  await expectRefusedOrRight(network, () => resumed.extend(10_000), ["LOCK_LOST"]);
  expect(values()).toEqual(held);
  await expectRefusedOrRight(network, () => resumed.release(), ["none"]);
  expect(values()[1]).toBe(before[1]);
}

/** Without the fields that an array names, or with those of an object. */
function changed(original: LockJSON, change: unknown): LockJSON {
  const json = { ...original } as unknown as Record<string, unknown>;
  if (Array.isArray(change)) for (const name of change) delete json[typeof name === "string" ? name : ""];
  const given =
    typeof change === "object" && change && !Array.isArray(change) ? { ...json, ...change } : json;
  return given as unknown as LockJSON;
}

function expectLockJSON({ value, fence, ttl = 10, prefix = "" }: LockJSON): void {
  expect([typeof value, typeof ttl, typeof prefix]).toEqual(["string", "number", "string"]);
  expect(ttl >= 10 && Number.isInteger(ttl), `${ttl}`).toBe(true);
  if (fence !== undefined) expect(Number.isSafeInteger(fence) && fence > 0, `${fence}`).toBe(true);
}

describe("arguments of any type", () => {
  forbidUnhandledRejections();

  test("are refused before anything is sent, or work", async () => {
    await fc.assert(
      fc.asyncProperty(resource, options, fc.nat(4), async (name, given, which) => {
        const { network, redlock } = open();
        const [taken, how] = [name as string, given as object];
        const calls = [
          () => redlock.acquire(taken, how),
          () => redlock.tryAcquire(taken, how),
          () => redlock.using(taken, how, () => 1),
          () => inspect(redlock, taken, how),
          () => forceRelease(redlock, taken, how),
        ];
        const before = network.exchanges.length;
        // Only a deadline can make the acquire of a free resource fail.
        const late = Object.hasOwn(Object(given), "deadline") ? ["NO_QUORUM"] : ["none"];
        const lock = (await expectRefusedOrRight(network, calls[which]!, late)) as Lock | undefined;
        // 300 ms of waiting have room for 13 pauses of 25 ms; more rounds are a storm.
        expect(network.exchanges.length - before).toBeLessThan(60);
        if (which < 2 && lock) {
          await expectRefusedOrRight(network, () => lock.release(), ["none"]);
          expect(network.engines[0]!.execute(["KEYS", "*:lock:*"])).toEqual([]);
        }
        await network.runtime.advance(1_000);
      }),
      seeded<[unknown, unknown, number]>(250, [
        ["a", { signal: { addEventListener: () => undefined } }, 0],
        ["\ud800", {}, 0],
        ["a", { prefix: "\udfff" }, 0],
        ["a", { backoff: null }, 0],
        [dated, {}, 0],
      ]),
    );
    for (const [what, times] of Object.entries(seen)) expect(times, what).toBeGreaterThan(0);
  });

  test("of a backoff cause no storm of requests", async () => {
    await fc.assert(
      fc.asyncProperty(backoff, async (given) => {
        const { network, redlock } = open();
        await network.runtime.outcomeOf(() => redlock.acquire("a"));
        const call = () => redlock.acquire("a", { wait: 1_000, backoff: given as object });
        await expectRefusedOrRight(network, call, ["LOCK_HELD"]);
        // Pauses of 1 ms are allowed where the caller sets them.
        const { min } = given as { min?: unknown };
        const asked = typeof min === "number" && min < 25;
        const bounded = typeof (given as { max?: unknown }).max === "number";
        if (!asked && !bounded) expect(network.exchanges.length).toBeLessThan(60);
      }),
      seeded<[object]>(150, [[{ min: null }], [{ max: null }], [{ min: Infinity }], [{ min: 1e308 }]]),
    );
  });

  test("of a client and of its endpoints are refused by the constructor, or work", async () => {
    const endpoint = fc.oneof(
      anything,
      fc.record({ url: anything, token: anything, name: anything }, { requiredKeys: [] }),
      fc.record({ name: anything, dialect: anything, send: fc.constant(() => "OK") }, { requiredKeys: [] }),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(anything, fc.array(endpoint, { maxLength: 3 })),
        options,
        async (endpoints, given) => {
          const { network } = open();
          const { runtime } = network;
          let redlock: Redlock;
          try {
            redlock = new Redlock({ ...(given as object), endpoints, runtime } as unknown as RedlockOptions);
          } catch (error) {
            expectMisuse(error);
            return;
          }
          // Whatever these endpoints answer, each has a name under which it is reported.
          const outcome = await runtime.outcomeOf(() => inspect(redlock, "a"));
          if ("error" in outcome) expectTyped(outcome.error, "NO_QUORUM");
          const { votes } = "error" in outcome ? (outcome.error as QuorumError) : outcome.value;
          for (const vote of votes) expect(typeof vote.endpoint).toBe("string");
        },
      ),
      seeded<[unknown, unknown]>(250, [
        [[{ send: () => "OK" }], {}],
        [[{ send: () => "OK", name: "own", dialect: "valkey" }], {}],
        [[{ url: "https://host", token: "token", name: 5 }], {}],
      ]),
    );
  });

  test("of resume are refused at once, or affect only the lock's own keys", async () => {
    const field = fc.constantFrom("resources", "prefix", "nonce", "ttl", "fence", "endpoints");
    const changes = fc.oneof(
      { weight: 5, arbitrary: fc.dictionary(field, anything, { maxKeys: 3, noNullPrototype: true }) },
      { weight: 1, arbitrary: fc.array(field, { maxLength: 3 }) },
      { weight: 1, arbitrary: anything },
    );
    await fc.assert(
      fc.asyncProperty(changes, resumeChanged),
      seeded<[unknown]>(150, [
        [["prefix"]],
        [{ nonce: "" }],
        [{ resources: ["b"] }],
        [{ ttl: null }],
        [{ fence: -1 }],
        [{ fence: "7" }],
        [{ ttl: 1e300 }],
        [{ endpoints: null }],
      ]),
    );
  });
});

describe("arguments of runs of any type", () => {
  forbidUnhandledRejections();

  function openRuns() {
    const { network, redlock } = open();
    const records = () => network.engines.flatMap((engine) => engine.execute(["KEYS", "*"]) as string[]);
    return { network, idempotency: new Idempotency(redlock), records };
  }

  const runOption = fc.constantFrom(
    ...["lease", "retention", "wait", "maxHold", "timeout", "backoff", "waitUntil", "onEvent"],
    ...["scope", "fingerprint", "codec", "signal", "deadline", "note"],
  );
  const codec = fc.record({ encode: anything, decode: anything }, { requiredKeys: [] });
  const runsWith = fc.oneof(
    { weight: 6, arbitrary: fc.dictionary(runOption, anything, { maxKeys: 3, noNullPrototype: true }) },
    { weight: 2, arbitrary: codec.map((given) => ({ codec: given })) },
    { weight: 1, arbitrary: anything },
  );

  test("options of any type are refused before the handler runs, or work", async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.constant("key"), anything), runsWith, async (key, given) => {
        const { network, idempotency, records } = openRuns();
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
  });

  test("a result is replayed as its JSON; one without JSON is unavailable, and never run again", async () => {
    const cyclic: unknown[] = [];
    cyclic.push(cyclic);
    await fc.assert(
      fc.asyncProperty(fc.oneof(anything, fc.jsonValue(), fc.string({ unit: codePoint })), async (given) => {
        const { network, idempotency, records } = openRuns();
        const { runtime } = network;
        const first = await runtime.outcomeOf(() => idempotency.run("key", () => given));
        const { status, value, unstored } = (first as { value: Outcome<unknown> }).value;
        expect(status).toBe("executed");
        expect(records()).toHaveLength(1);
        const replayed = await runtime.outcomeOf(() => idempotency.run("key", () => "another"));
        if (unstored) {
          expect(value).toBe(given);
          const error = { code: "RESULT_UNAVAILABLE", key: "key", reason: unstored };
          expect(replayed).toMatchObject({ error });
          return;
        }
        const expected = given === undefined ? undefined : JSON.parse(JSON.stringify(given));
        expect(value).toEqual(expected);
        expect(replayed).toEqual({ value: { status: "replayed", value: expected } });
      }),
      seeded<[unknown]>(100, [[cyclic], [undefined], ["\ud800"], [{ toJSON: () => undefined }], [10n]]),
    );
  });
});
