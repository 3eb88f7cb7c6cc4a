import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fingerprintOf } from "../../../../src/idempotency/digest.ts";
import {
  FingerprintMismatchError,
  forgetKey,
  InProgressError,
  inspectKey,
  RecordCorruptError,
} from "../../../../src/idempotency/index.ts";
import { parseRecord } from "../../../../src/idempotency/record.ts";
import { freshKey } from "../../../support/fresh-key.ts";
import { gate } from "../../../support/link.ts";
import { outcomeOf } from "../../../support/outcomes.ts";
import {
  allArrived,
  type Client,
  clientOf,
  type OpenStore,
  recordName,
  recordsOf,
  storesOf,
  ttlsOf,
} from "../../../support/stores.ts";

// Runs on every set of endpoints: what can differ by engine, number of endpoints and dialect.

const never = () => expect.unreachable("nothing may run");

describe.each(storesOf([1, 2, 3], [1, 3]))("idempotency on $title", ({ open, engine, count, dialect }) => {
  const all = <Value>(value: Value) => new Array(count).fill(value) as Value[];
  let store: OpenStore;
  let first: Client;
  let second: Client;

  beforeAll(async () => {
    store = await open();
    first = clientOf(store, { lease: 600_000, retention: 6_000_000 });
    second = clientOf(store, { lease: 600_000, retention: 6_000_000 });
  });
  afterAll(() => store.close());

  /** A run of `key` that goes on until the test gives it a result. */
  async function underWay(key: string, options: { fingerprint?: string } = {}) {
    const started = gate();
    const result = gate<unknown>();
    const run = first.idempotency.run(key, options, () => {
      started.open();
      return result.passed;
    });
    await Promise.race([started.passed, run]);
    await allArrived(first.links);
    return { run, finish: result.open };
  }

  test("a run is stored as pending, then as complete, and replays the same value", async () => {
    const key = freshKey();
    const value = { paid: true, lines: [1, "zwei", null], note: "Ünïcode\n\u0000 ≠ 💶" };
    let pending: (string | null)[] = [];
    const outcome = await first.idempotency.run(key, async ({ remaining }) => {
      expect(remaining() > 0 && remaining() < 600_000).toBe(true);
      await allArrived(first.links);
      pending = await recordsOf(store, key);
      for (const ttl of await ttlsOf(store, key)) expect(ttl > 0 && ttl <= 600_000).toBe(true);
      return value;
    });
    expect(outcome).toEqual({ status: "executed", value });
    expect(pending.map((text) => parseRecord(text)?.state)).toEqual(all("pending"));
    for (const client of [first, second]) {
      expect(await client.idempotency.run(key, never)).toEqual({ status: "replayed", value });
    }
    const records = await recordsOf(store, key);
    expect(new Set(records).size).toBe(1);
    expect(records[0]).toMatch(/^C1 [a-z][0-9a-f]{32} \d+ - \{"paid":true,/);
    for (const ttl of await ttlsOf(store, key)) expect(ttl > 5_000_000 && ttl <= 6_000_000).toBe(true);
  });

  test("replays every value of JSON as it was, also a large one", async () => {
    const values = [
      undefined,
      null,
      "",
      0,
      false,
      [],
      { a: { b: [null] } },
      "line\nline",
      "ü".repeat(200_000),
    ];
    for (const value of values) {
      const key = freshKey();
      await first.idempotency.run<unknown>(key, () => value);
      expect(await second.idempotency.run(key, never)).toEqual({ status: "replayed", value });
    }
  });

  test("a run under way is busy, and one with another fingerprint a mismatch, also after it", async () => {
    const key = freshKey();
    const { run, finish } = await underWay(key, { fingerprint: "amount=10" });
    const before = await recordsOf(store, key);
    const attempt = (fingerprint?: string) =>
      outcomeOf(second.idempotency.run(key, { fingerprint }, never)).then(({ error }) => error);
    const busy = (await attempt("amount=10")) as InProgressError;
    expect(busy).toBeInstanceOf(InProgressError);
    expect(busy.retryAfter > 300_000 && busy.retryAfter <= 600_000).toBe(true);
    expect(await attempt("amount=99")).toBeInstanceOf(FingerprintMismatchError);
    expect(await recordsOf(store, key)).toEqual(before);
    finish("result");
    await run;
    expect(await attempt("amount=99")).toBeInstanceOf(FingerprintMismatchError);
    for (const fingerprint of ["amount=10", undefined]) {
      const again = await second.idempotency.run(key, { fingerprint }, never);
      expect(again).toEqual({ status: "replayed", value: "result" });
    }
  });

  test("a handler that fails frees its key", async () => {
    const key = freshKey();
    const { error } = await outcomeOf(
      first.idempotency.run(key, () => Promise.reject(new Error("declined"))),
    );
    expect(error).toEqual(new Error("declined"));
    expect(await recordsOf(store, key)).toEqual(all(null));
    expect(await second.idempotency.run(key, () => "paid")).toEqual({ status: "executed", value: "paid" });
  });

  test("requests that are executed twice run once", async () => {
    const key = freshKey();
    const client = clientOf(store);
    for (const link of client.links) link.fate = () => "twice";
    let runs = 0;
    expect(await client.idempotency.run(key, () => ++runs)).toEqual({ status: "executed", value: 1 });
    expect(await second.idempotency.run(key, never)).toEqual({ status: "replayed", value: 1 });
  });

  test.each([
    ["SET", "something else"],
    ["SET", ""],
    ["SET", "P2 t0 1 -"],
  ])("what is no record is corrupt, stays, and can be forgotten: %s %j", async (command, ...rest) => {
    const key = freshKey();
    const name = await recordName(key);
    for (let index = 0; index < count; index += 1) await store.execute(index, [command, name, ...rest]);
    const events: string[] = [];
    const onEvent = ({ type }: { type: string }) => events.push(type);
    const { error } = await outcomeOf(first.idempotency.run(key, { wait: Infinity, onEvent }, never));
    expect(error).toBeInstanceOf(RecordCorruptError);
    expect(events).toEqual(["corrupt"]);
    expect((await inspectKey(first.idempotency, key)).state).toBe("corrupt");
    expect(await forgetKey(first.idempotency, key)).toBe(true);
    expect(await forgetKey(first.idempotency, key)).toBe(false);
    expect((await first.idempotency.run(key, () => 1)).status).toBe("executed");
  });

  test("a value of another type is corrupt, and stays", async () => {
    const key = freshKey();
    const name = await recordName(key);
    for (let index = 0; index < count; index += 1) await store.execute(index, ["HSET", name, "f", "x"]);
    const { error } = await outcomeOf(first.idempotency.run(key, never));
    expect(error).toBeInstanceOf(RecordCorruptError);
    expect((await inspectKey(first.idempotency, key)).state).toBe("corrupt");
    expect((await outcomeOf(forgetKey(first.idempotency, key))).error).toBeInstanceOf(RecordCorruptError);
    expect(await store.execute(0, ["HMGET", name, "f"])).toEqual(["x"]);
  });

  test("compares and replaces by native commands only where the dialect has them", async () => {
    const { idempotency, links } = clientOf(store);
    await idempotency.run(freshKey(), () => 1);
    await outcomeOf(idempotency.run(freshKey(), () => Promise.reject(new Error("no"))));
    const names = new Set(links.flatMap(({ sent }) => sent.map(([name]) => name)));
    expect(names.has("DELEX")).toBe(dialect !== "redis");
    expect(names.has("EVAL")).toBe(dialect === "redis");
    expect(names.has("GET")).toBe(false);
  });

  test("a result of at most maxResult bytes in the request is stored", async () => {
    // Megabytes take the embedded Lua machine seconds.
    const maxResult = engine === "redis" ? 4_000_000 : 100_000;
    for (const value of ["ü\n\"'<\u2028".repeat(300), "x".repeat(maxResult - 10_000)]) {
      const key = freshKey();
      await clientOf(store, { maxResult }).idempotency.run(key, () => value);
      expect(await second.idempotency.run(key, never)).toEqual({ status: "replayed", value });
      const size = new TextEncoder().encode(JSON.stringify((await recordsOf(store, key))[0])).length;
      const exact = clientOf(store, { maxResult: Math.min(maxResult, size) });
      expect((await exact.idempotency.run(freshKey(), () => value)).unstored).toBe(undefined);
      const short = clientOf(store, { maxResult: size - 3 });
      expect((await short.idempotency.run(freshKey(), () => value)).unstored).toBe("too-large");
    }
  });

  test("operators see a run under way and its result, change nothing, and forget only what has ended", async () => {
    const key = freshKey();
    const { run, finish } = await underWay(key, { fingerprint: "body" });
    const records = await recordsOf(store, key);
    const { idempotency, links } = clientOf(store);
    const pending = await inspectKey(idempotency, key);
    expect(pending).toMatchObject({ state: "pending", fingerprint: await fingerprintOf("body") });
    expect(pending.votes.map(({ state }) => state)).toEqual(all("pending"));
    const { error } = await outcomeOf(forgetKey(idempotency, key));
    expect(error).toBeInstanceOf(InProgressError);
    const { retryAfter } = error as InProgressError;
    expect(retryAfter > 300_000 && retryAfter <= 600_000).toBe(true);
    expect(await recordsOf(store, key)).toEqual(records);
    const names = new Set(links.flatMap(({ sent }) => sent.map(([name]) => name)));
    // The first by its text, the second by its hash.
    expect([...names]).toEqual(["EVAL", "EVALSHA"]);

    finish("the result");
    await run;
    const complete = await inspectKey(idempotency, key);
    expect(complete).toMatchObject({ state: "complete", fingerprint: await fingerprintOf("body") });
    expect(complete.remaining > 5_000_000 && complete.remaining <= 6_000_000).toBe(true);
    expect(JSON.stringify(complete)).not.toMatch(/the result|body/);
    expect(await forgetKey(idempotency, key)).toBe(true);
    expect(await recordsOf(store, key)).toEqual(all(null));
    expect((await idempotency.run(key, () => "second")).value).toBe("second");
  });

  // A lock server bills no commands.
  if (engine === "durable") return;
  describe("costs what the budget says:", () => {
    /** Requests and commands billed, by endpoint, for what `work` does. */
    async function costOf(links: Client["links"], work: () => Promise<unknown>): Promise<number[][]> {
      await allArrived(links);
      const before = store.endpoints.map((_, index) => store.cost(index));
      await work();
      await allArrived(links);
      return before.map(({ requests, billed }, index) => {
        const after = store.cost(index);
        return [after.requests - requests, after.billed - billed];
      });
    }
    const scripted = dialect === "redis" ? 3 : 1;
    const refusal = dialect === "redis" ? 2 : 1;

    /** What a run, a duplicate and a refused call cost. */
    async function costsOf(options: { fingerprint?: string; maxAttempts?: number }, lock?: string) {
      const { idempotency, links } = clientOf(store);
      const run = (key: string, handler: () => unknown) =>
        lock === undefined
          ? idempotency.run<unknown>(key, options, handler)
          : idempotency.run<unknown>(key, { ...options, lock }, handler);
      for (let times = 0; times < 2; times += 1) {
        await run(freshKey(), () => "the server is known from here on");
      }
      const key = freshKey();
      const first = await costOf(links, () =>
        run(key, async () => {
          // Where the begin is not answered, the end of a run with a lock leaves a tombstone.
          await allArrived(links);
          return "x".repeat(1_000);
        }),
      );
      const again = await costOf(links, () => run(key, never));
      let refused: number[][] = [];
      await run(lock === undefined ? `busy${key}` : freshKey(), async () => {
        const other = lock === undefined ? `busy${key}` : freshKey();
        refused = await costOf(links, () => outcomeOf(run(other, never)));
      });
      const failing = () => outcomeOf(run(freshKey(), () => Promise.reject(new Error("no"))));
      const failed = await costOf(links, failing);
      return { first, again, refused, failed };
    }

    test.each([{}, { fingerprint: "the body" }])("a run, with %j", async (options) => {
      expect(await costsOf(options)).toEqual({
        first: all([2, 2 * scripted]),
        again: all([1, refusal]),
        refused: all([1, refusal]),
        failed: all([2, 2 * scripted]),
      });
    });

    test("a run that is counted, with one request more", async () => {
      const costs = await costsOf({ maxAttempts: 3, fingerprint: "f" });
      expect([costs.first, costs.again, costs.refused]).toEqual([
        all([3, 3 * scripted]),
        all([1, refusal]),
        all([1, refusal]),
      ]);
    });

    test("a run with a lock", async () => {
      const costs = await costsOf({}, freshKey());
      expect([costs.first, costs.again, costs.refused]).toEqual([all([2, 10]), all([1, 2]), all([1, 3])]);
    });
  });
});
