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

describe.each(storesOf([1, 2, 3], [1, 3]))("idempotency on $title", ({ open, engine, count }) => {
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

  test.each([
    ["SET", "something else"],
    ["SET", ""],
    ["SET", "P2 t0 1 -"],
    ["HSET", "f", "x"],
  ])(
    "what is no record is corrupt, stays, and can be forgotten if it is a text: %s %j",
    async (command, ...rest) => {
      const key = freshKey();
      const name = await recordName(key);
      for (let index = 0; index < count; index += 1) await store.execute(index, [command, name, ...rest]);
      const events: string[] = [];
      const onEvent = ({ type }: { type: string }) => events.push(type);
      const { error } = await outcomeOf(first.idempotency.run(key, { wait: Infinity, onEvent }, never));
      expect(error).toBeInstanceOf(RecordCorruptError);
      expect(events).toEqual(["corrupt"]);
      expect((await inspectKey(first.idempotency, key)).state).toBe("corrupt");
      if (command === "HSET") {
        expect((await outcomeOf(forgetKey(first.idempotency, key))).error).toBeInstanceOf(RecordCorruptError);
        expect(await store.execute(0, ["HMGET", name, "f"])).toEqual(["x"]);
        return;
      }
      expect(await forgetKey(first.idempotency, key)).toBe(true);
      expect(await forgetKey(first.idempotency, key)).toBe(false);
      expect((await first.idempotency.run(key, () => 1)).status).toBe("executed");
    },
  );

  test("a result of at most maxResult bytes in the request is stored", async () => {
    // Megabytes take the embedded Lua machine seconds.
    const maxResult = engine === "redis" ? 200_000 : 30_000;
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
});
