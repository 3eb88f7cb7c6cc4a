import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type Codec,
  FingerprintMismatchError,
  InProgressError,
  RecordCorruptError,
} from "../../../src/idempotency/index.ts";
import { parseRecord } from "../../../src/idempotency/record.ts";
import { eachEngine } from "../../support/each-engine.ts";
import { freshKey } from "../../support/fresh-key.ts";
import { gate } from "../../support/link.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import {
  allArrived,
  type Client,
  clientOf,
  type OpenStore,
  recordName,
  recordsOf,
  storesOf,
  ttlsOf,
} from "../../support/stores.ts";

eachEngine(storesOf([1, 2, 3], [1, 3]))("idempotency on $title", ({ open, count, dialect }) => {
  let store: OpenStore;
  let first: Client;
  let second: Client;

  beforeAll(async () => {
    store = await open();
    first = clientOf(store, { lease: 20_000, retention: 600_000 });
    second = clientOf(store, { lease: 20_000, retention: 600_000 });
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

  test("runs once, then replays the same value", async () => {
    const key = freshKey();
    const value = { paid: true, lines: [1, "zwei", null], note: "Ünïcode\n\u0000 ≠ 💶" };
    let pending: (string | null)[] = [];
    let pendingTtls: number[] = [];
    const outcome = await first.idempotency.run(key, async ({ key: given, token, signal, remaining }) => {
      expect(given).toBe(key);
      expect(token).toMatch(/^[a-z][0-9a-f]{32}$/);
      expect(signal.aborted).toBe(false);
      expect(remaining()).toBeGreaterThan(0);
      expect(remaining()).toBeLessThan(20_000);
      await allArrived(first.links);
      pending = await recordsOf(store, key);
      pendingTtls = await ttlsOf(store, key);
      return value;
    });
    expect(outcome).toEqual({ status: "executed", value });
    expect(pending.map((text) => parseRecord(text)?.state)).toEqual(new Array(count).fill("pending"));
    for (const ttl of pendingTtls) expect(ttl > 0 && ttl <= 20_000).toBe(true);

    for (const client of [first, second]) {
      const again = await client.idempotency.run(key, () => expect.unreachable("it must not run again"));
      expect(again).toEqual({ status: "replayed", value });
    }
    const records = await recordsOf(store, key);
    expect(new Set(records).size).toBe(1);
    expect(records[0]).toMatch(/^C1 [a-z][0-9a-f]{32} \d+ - \{"paid":true,/);
    for (const ttl of await ttlsOf(store, key)) expect(ttl > 500_000 && ttl <= 600_000).toBe(true);
  });

  test("stores keys and fingerprints as hashes only", async () => {
    const key = `customer@example.com-${freshKey()}`;
    const { idempotency, links } = clientOf(store);
    await idempotency.run(key, { scope: "tenant-47", fingerprint: "the whole body" }, () => 1);
    const sent = JSON.stringify(links.map((link) => link.sent));
    expect(sent).not.toMatch(/customer@example\.com|tenant-47|the whole body/);
  });

  test("another run is busy while one is under way, and replayed after it", async () => {
    const key = freshKey();
    const { run, finish } = await underWay(key);
    const before = await recordsOf(store, key);
    const { error } = await outcomeOf(second.idempotency.run(key, () => expect.unreachable("busy")));
    expect(error).toBeInstanceOf(InProgressError);
    expect(error).toMatchObject({ name: "InProgressError", code: "IN_PROGRESS", key });
    const { retryAfter } = error as InProgressError;
    expect(retryAfter > 15_000 && retryAfter <= 20_000).toBe(true);
    expect(await recordsOf(store, key)).toEqual(before);
    finish("result");
    expect(await run).toEqual({ status: "executed", value: "result" });
    expect(await second.idempotency.run(key, () => "other")).toEqual({ status: "replayed", value: "result" });
  });

  test("a different fingerprint is a mismatch, while it runs and after", async () => {
    const key = freshKey();
    const { run, finish } = await underWay(key, { fingerprint: "amount=10" });
    const differing = { fingerprint: "amount=99", wait: 10_000 };
    const attempt = () =>
      outcomeOf(second.idempotency.run(key, differing, () => expect.unreachable("mismatch")));
    const early = await attempt(); // although it could wait: waiting would not help
    expect(early.error).toBeInstanceOf(FingerprintMismatchError);
    expect(early.error).toMatchObject({ code: "FINGERPRINT_MISMATCH", key });
    const busy = await outcomeOf(second.idempotency.run(key, { fingerprint: "amount=10" }, () => 0));
    expect(busy.error).toBeInstanceOf(InProgressError);
    finish(1);
    await run;
    expect((await attempt()).error).toBeInstanceOf(FingerprintMismatchError);
    const bytes = new TextEncoder().encode("amount=10");
    for (const fingerprint of ["amount=10", bytes, undefined]) {
      const outcome = await second.idempotency.run(key, { fingerprint }, () =>
        expect.unreachable("complete"),
      );
      expect(outcome).toEqual({ status: "replayed", value: 1 });
    }
  });

  test("a run without a fingerprint fits every fingerprint", async () => {
    const key = freshKey();
    await first.idempotency.run(key, () => 7);
    const outcome = await second.idempotency.run(key, { fingerprint: "anything" }, () => 8);
    expect(outcome).toEqual({ status: "replayed", value: 7 });
  });

  test("computes the fingerprint before the handler can change what it is of", async () => {
    const key = freshKey();
    const body = new TextEncoder().encode("original");
    await first.idempotency.run(key, { fingerprint: body }, () => {
      body.fill(0);
    });
    const same = await second.idempotency.run(key, { fingerprint: "original" }, () => "again");
    expect(same.status).toBe("replayed");
  });

  test.each([
    ["rejects", () => Promise.reject(new Error("declined"))],
    [
      "throws",
      () => {
        throw new Error("declined");
      },
    ],
  ])("a handler that %s frees its key", async (_how, handler) => {
    const key = freshKey();
    const { error } = await outcomeOf(first.idempotency.run(key, handler));
    expect(error).toEqual(new Error("declined"));
    expect(await recordsOf(store, key)).toEqual(new Array(count).fill(null));
    expect(await second.idempotency.run(key, () => "paid")).toEqual({ status: "executed", value: "paid" });
  });

  test("rejects with anything that the handler throws", async () => {
    for (const thrown of [undefined, null, 0, "text", Object.freeze({ frozen: true })]) {
      const { error } = await outcomeOf(first.idempotency.run(freshKey(), () => Promise.reject(thrown)));
      expect(error).toBe(thrown);
    }
  });

  const values: [what: string, value: unknown][] = [
    ...[undefined, null, "", 0, false, [], { a: { b: [null] } }, "line\nline"].map(
      (value): [string, unknown] => [String(JSON.stringify(value)), value],
    ),
    ["a large text", "ü".repeat(200_000)],
  ];
  test.each(values)("replays %s", async (_what, value) => {
    const key = freshKey();
    await first.idempotency.run(key, () => value);
    const outcome = await second.idempotency.run(key, () => expect.unreachable("complete"));
    expect(outcome).toEqual({ status: "replayed", value });
  });

  test("a codec decides how the result is stored", async () => {
    const codec: Codec<Date> = {
      encode: (date) => `at ${date.getTime()}\n{not JSON`,
      decode: (text) => new Date(Number(/^at (\d+)\n/.exec(text)?.[1])),
    };
    const key = freshKey();
    const value = new Date(1_700_000_000_123);
    await first.idempotency.run(key, { codec }, () => value);
    const outcome = await second.idempotency.run(key, { codec }, () => expect.unreachable("complete"));
    expect(outcome).toEqual({ status: "replayed", value });
  });

  test("scopes keep keys apart, and no delimiter joins them", async () => {
    const key = freshKey();
    const places: [scope: string | readonly string[] | undefined, key: string][] = [
      [undefined, key],
      ["a", key],
      ["b", key],
      [["a", "b"], key],
      ["a:b", key],
      [["ab"], key],
      [["a,b"], key],
      [["a", "b", " "], key],
      [["a"], `"b",${key}`],
      [["a"], `b:${key}`],
      ['a","b', key],
      ["a", `bc${key}`],
      ["ab", `c${key}`],
    ];
    for (const [index, [scope, name]] of places.entries()) {
      const outcome = await first.idempotency.run(name, { scope }, () => index);
      expect(outcome).toEqual({ status: "executed", value: index });
    }
    for (const [index, [scope, name]] of places.entries()) {
      expect(await second.idempotency.run(name, { scope }, () => -1)).toEqual({
        status: "replayed",
        value: index,
      });
    }
  });

  test.each([
    "something else",
    "",
    '{"state":"complete"}',
    "P2 t0 1 -",
    "C2 t0 1 - {}",
    "P1 t0 1 - extra",
    "C1 t0 1 -",
    "C1 t0 yesterday - {}",
  ])("%j in the record's place is corrupt: nothing runs, nothing changes", async (text) => {
    const key = freshKey();
    const name = await recordName(key);
    for (let index = 0; index < count; index += 1) await store.execute(index, ["SET", name, text]);
    const { error } = await outcomeOf(
      first.idempotency.run(key, { wait: 5_000 }, () => expect.unreachable("run")),
    );
    expect(error).toBeInstanceOf(RecordCorruptError);
    expect(error).toMatchObject({ code: "RECORD_CORRUPT", key });
    expect(await recordsOf(store, key)).toEqual(new Array(count).fill(text));
  });

  test("a begin that the network delivers twice runs once", async () => {
    const key = freshKey();
    const client = clientOf(store);
    for (const link of client.links) link.fate = () => "twice";
    let runs = 0;
    const outcome = await client.idempotency.run(key, () => ++runs);
    expect(outcome).toEqual({ status: "executed", value: 1 });
    expect(await second.idempotency.run(key, () => ++runs)).toEqual({ status: "replayed", value: 1 });
  });

  test("compares and replaces by native commands only where the dialect has them", async () => {
    const { idempotency, links } = clientOf(store);
    await idempotency.run(freshKey(), () => 1);
    await outcomeOf(idempotency.run(freshKey(), () => Promise.reject(new Error("no"))));
    const names = new Set(links.flatMap(({ sent }) => sent.map(([name]) => name)));
    expect(names.has("DELEX")).toBe(dialect !== "redis");
    expect(names.has("EVALSHA")).toBe(dialect === "redis");
    expect(names.has("GET")).toBe(false);
  });
});

describe("arguments", async () => {
  const store = await storesOf([1])[0]!.open();
  const { idempotency, links, redlock } = clientOf(store);
  const handler = () => expect.unreachable("nothing may run");
  const wrong = (value: unknown) => value as never;

  test.each([
    ["an empty key", () => idempotency.run("", handler), RangeError, /key/],
    ["a key that is not a string", () => idempotency.run(wrong(42), handler), TypeError, /key.*number/],
    ["no key", () => idempotency.run(wrong(undefined), handler), TypeError, /key.*missing/],
    ["no handler", () => idempotency.run("k", wrong(undefined)), TypeError, /handler.*missing/],
    ["a handler that is none", () => idempotency.run("k", {}, wrong("x")), TypeError, /handler.*"x"/],
    ["lease 9", () => idempotency.run("k", { lease: 9 }, handler), RangeError, /9/],
    ["lease 10.5", () => idempotency.run("k", { lease: 10.5 }, handler), RangeError, /10\.5/],
    [
      "retention below the lease",
      () => idempotency.run("k", { lease: 30_000, retention: 29_999 }, handler),
      RangeError,
      /retention.*29999/,
    ],
    ["wait −1", () => idempotency.run("k", { wait: -1 }, handler), RangeError, /wait.*-1/],
    ["timeout 0", () => idempotency.run("k", { timeout: 0 }, handler), RangeError, /timeout.*0/],
    ["maxHold NaN", () => idempotency.run("k", { maxHold: NaN }, handler), RangeError, /maxHold.*NaN/],
    ["deadline NaN", () => idempotency.run("k", { deadline: NaN }, handler), RangeError, /deadline.*NaN/],
    ["signal {}", () => idempotency.run("k", { signal: wrong({}) }, handler), TypeError, /signal/],
    ["onEvent 1", () => idempotency.run("k", { onEvent: wrong(1) }, handler), TypeError, /onEvent.*number/],
    // A scope of absent parts would be shared by events that have nothing to do with each other.
    ["scope null", () => idempotency.run("k", { scope: wrong(null) }, handler), TypeError, /scope.*null/],
    ["scope 7", () => idempotency.run("k", { scope: wrong(7) }, handler), TypeError, /scope.*number/],
    [
      "scope [undefined]",
      () => idempotency.run("k", { scope: wrong(["shop", undefined]) }, handler),
      TypeError,
      /scope.*missing/,
    ],
    ["fingerprint {}", () => idempotency.run("k", { fingerprint: wrong({}) }, handler), TypeError, /./],
  ])("%s is refused before anything is sent", async (_what, run, type, message) => {
    const { error } = await outcomeOf(run());
    expect(error).toBeInstanceOf(type);
    expect(String(error)).toMatch(message);
    expect(links[0]!.sent.splice(0)).toEqual([]);
  });

  test.each([
    [{ lease: 5 }, RangeError],
    [{ lease: wrong("30s") }, TypeError],
    [{ retention: 10 }, RangeError],
    [{ onEvent: wrong("log") }, TypeError],
  ])("the constructor refuses %j at once", (options, type) => {
    expect(() => clientOf(store, options)).toThrow(type);
  });

  test("a client with its own settings of locks can be used", () => {
    expect(() => clientOf(store, {}, { fenceRetention: 15_000 })).not.toThrow();
  });

  test("undefined leaves defaults in place", async () => {
    const { Idempotency } = await import("../../../src/idempotency/index.ts");
    const given = new Idempotency(redlock, { lease: 60_000, retention: undefined });
    const key = freshKey();
    let ttl = 0;
    await given.run(key, { lease: undefined }, async () => {
      ttl = (await ttlsOf(store, key))[0]!;
    });
    expect(ttl).toBeGreaterThan(50_000);
  });
});
