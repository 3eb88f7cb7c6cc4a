import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isRedlockError, QuorumError, Redlock } from "../../../src/index.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { ArrivalsMissingError, CountDownLatch, LimitMismatchError } from "../../../src/sync/index.ts";
import { eachInTurns } from "../../support/in-turns.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { isSettled, rejection } from "../../support/outcomes.ts";
import { paced } from "../../support/pace.ts";
import { allArrived, type OpenStore } from "../../support/stores.ts";
import { until } from "../../support/until.ts";
import { onEach, stores, type Visitor, visitor } from "./stand.ts";

eachInTurns(stores([1, 2, 3, 5], [3]))("CountDownLatch on $title", ({ open, count: endpoints }) => {
  const minority = Math.floor((endpoints - 1) / 2);
  let store: OpenStore;
  let first: Visitor;
  let second: Visitor;

  beforeAll(async () => {
    store = await open();
    first = visitor(store);
    second = visitor(store);
  });
  afterAll(() => store.close());

  const latchOf = ({ redlock }: Visitor, name: string, count = 3) =>
    new CountDownLatch(redlock, name, { count });

  /** Arrivals one after another, each at every endpoint. Returns what the last one returned. */
  async function arriveAll(visitor: Visitor, name: string, ids: readonly string[]) {
    let state: unknown;
    for (const id of ids) {
      state = await latchOf(visitor, name).arrive(id);
      await allArrived(visitor.links);
    }
    return state;
  }

  test("opens with the last arrival, counts each id once, and stays open", async () => {
    const name = newResource("latch");
    const states = [];
    for (const id of ["1", "true", "1", "[1]"]) {
      states.push(await latchOf(first, name).arrive(id));
      await allArrived(first.links);
    }
    expect(states).toEqual([
      { open: false, arrived: 1, remaining: 2 },
      { open: false, arrived: 2, remaining: 1 },
      { open: false, arrived: 2, remaining: 1 },
      { open: true, arrived: 3, remaining: 0 },
    ]);
    await latchOf(second, name).wait({ wait: 0 });
    expect((await latchOf(second, name).inspect()).open).toBe(true);
    expect((await latchOf(second, name).arrive("late")).open).toBe(true);
  });

  test("waiting calls return when it opens", async () => {
    const name = newResource("latch");
    const waiting = visitor(store);
    const opened = latchOf(waiting, name).wait({ wait: 60_000 });
    await latchOf(first, name).arrive("a");
    await latchOf(first, name).arrive("b");
    const before = waiting.links[0]!.sent.length;
    await until(() => waiting.links[0]!.sent.length > before + 2, "looks at the latch");
    expect(await isSettled(opened)).toBe(false);
    await latchOf(first, name).arrive("c");
    await opened;
  });

  test("still closed after `wait`: ArrivalsMissingError; aborted: the signal's reason", async () => {
    const name = newResource("latch");
    await arriveAll(first, name, ["a", "b"]);
    const error = await rejection(latchOf(second, name).wait({ wait: 20 }));
    expect(error).toBeInstanceOf(ArrivalsMissingError);
    expect(isRedlockError(error)).toBe(true);
    expect(error).toMatchObject({ code: "ARRIVALS_MISSING", resource: name, count: 3, arrived: 2 });
    expect((error as ArrivalsMissingError).waited).toBeGreaterThanOrEqual(20);
    const brief = latchOf(second, name).wait({ wait: 60_000, deadline: Date.now() + 50 });
    expect(await rejection(brief)).toBeInstanceOf(ArrivalsMissingError);
    const past = latchOf(second, name).wait({ wait: 60_000, deadline: Date.now() - 1 });
    expect(await rejection(past)).toBeInstanceOf(RangeError);

    const controller = new AbortController();
    const { signal } = controller;
    const waiting = visitor(store);
    const failed = rejection(latchOf(waiting, name).wait({ wait: 60_000, signal }));
    await until(() => waiting.links[0]!.sent.length > 1, "looks at the latch");
    controller.abort(new Error("enough"));
    expect(await failed).toEqual(new Error("enough"));
    expect(await rejection(latchOf(waiting, name).arrive("c", { signal }))).toEqual(new Error("enough"));
    expect((await latchOf(second, name).inspect()).open).toBe(false);
  });

  test("opens with a minority down, and stays open with another minority down", async () => {
    const name = newResource("latch");
    const cut = visitor(store);
    for (const link of cut.links.slice(0, minority)) link.fate = () => "refused";
    expect(await arriveAll(cut, name, ["a", "b", "c"])).toMatchObject({ open: true });
    const other = visitor(store);
    for (const link of other.links.slice(endpoints - minority)) link.fate = () => "refused";
    expect((await latchOf(other, name).inspect()).open).toBe(true);
  });

  test("it stays open where an arrival is known to a minority only", async () => {
    if (minority === 0) return;
    const name = newResource("latch");
    await arriveAll(first, name, ["a", "b"]);
    // The third arrives at one endpoint only, and gets an error.
    const lone = visitor(store, { wait: 0 });
    for (const link of lone.links.slice(1)) link.fate = () => "refused";
    expect(await rejection(latchOf(lone, name).arrive("c"))).toBeInstanceOf(QuorumError);
    // A call that reaches this endpoint opens the latch.
    const seeing = visitor(store);
    for (const link of seeing.links.slice(endpoints - minority)) link.fate = () => "refused";
    expect((await latchOf(seeing, name).inspect()).open).toBe(true);
    // A later call does not reach it.
    const later = visitor(store);
    for (const link of later.links.slice(0, minority)) link.fate = () => "refused";
    expect((await latchOf(later, name).inspect()).open).toBe(true);
  });

  test("lost, repeated and late requests count once", async () => {
    const name = newResource("latch");
    const shaky = visitor(store, { timeout: paced(300) });
    for (const link of shaky.links) {
      let sent = 0;
      link.fate = () => (["reply lost", "twice", "lost", "delivered"] as const)[sent++ % 4]!;
    }
    const states = [];
    for (const id of ["a", "a", "b"]) states.push(await latchOf(shaky, name).arrive(id, { wait: 20_000 }));
    expect(states.map(({ arrived }) => arrived)).toEqual([1, 1, 2]);
    expect((await latchOf(shaky, name).arrive("c", { wait: 20_000 })).open).toBe(true);
  });

  test("an outage is a QuorumError, and the arrival can be repeated", async () => {
    const name = newResource("latch");
    const cut = visitor(store, { wait: 20 });
    for (const link of cut.links.slice(minority)) link.fate = () => "reply lost";
    const latch = latchOf(cut, name, 1);
    expect(await rejection(latch.arrive("a"))).toBeInstanceOf(QuorumError);
    expect(await rejection(latch.wait())).toBeInstanceOf(QuorumError);
    expect(await rejection(latch.inspect())).toBeInstanceOf(QuorumError);
    for (const link of cut.links) link.fate = () => "delivered";
    expect((await latch.arrive("a")).open).toBe(true);
  });

  test("an unexpected reply is no arrival", async () => {
    const name = newResource("latch");
    const replies = [["t0", "g1", []], ["OK"], "OK", null, 1, ["t0", "g0", ["ia", "ib", "ic"]]];
    for (const reply of replies) {
      const garbled = new Redlock({
        wait: 0,
        endpoints: store.endpoints.map(({ name, dialect }) => ({ name, dialect, send: async () => reply })),
      });
      const latch = new CountDownLatch(garbled, name, { count: 3 });
      expect(await rejection(latch.inspect()), JSON.stringify(reply)).toBeInstanceOf(QuorumError);
    }
  });

  test("another count is an error", async () => {
    const name = newResource("latch");
    await arriveAll(first, name, ["a"]);
    const other = latchOf(second, name, 4);
    for (const call of [() => other.arrive("b"), () => other.wait(), () => other.inspect()]) {
      const error = await rejection(call());
      expect(error).toBeInstanceOf(LimitMismatchError);
      expect(error).toMatchObject({ code: "LIMIT_MISMATCH", resource: name, limit: 4, inUse: 3 });
    }
    expect(await latchOf(first, name).inspect()).toMatchObject({ arrived: 1 });
  });

  test("a wrong count that reached a minority first is no error for others", async () => {
    if (minority === 0) return;
    const name = newResource("latch");
    const wrong = visitor(store, { wait: 0 });
    for (const link of wrong.links.slice(1)) link.fate = () => "refused";
    await rejection(latchOf(wrong, name, 7).arrive("x"));
    expect(await arriveAll(first, name, ["a", "b", "c"])).toMatchObject({ open: true });
  });

  test("expires after its ttl, which every arrival renews", async () => {
    const name = newResource("latch");
    const key = keyOf("redlock", "latch", name);
    const short = new CountDownLatch(first.redlock, name, { count: 2, ttl: 40_000 });
    await short.arrive("a");
    await allArrived(first.links);
    for (const ms of (await onEach(store, "PTTL", key)) as number[]) {
      expect(ms > 30_000 && ms <= 40_000).toBe(true);
    }
    await onEach(store, "PEXPIRE", key, "100");
    await until(async () => (await onEach(store, "EXISTS", key)).every((found) => found === 0), "the end");
    expect(await short.arrive("b")).toMatchObject({ open: false, arrived: 1 });
    const usual = latchOf(first, newResource("latch"));
    await usual.arrive("a");
    await allArrived(first.links);
    const [ms] = await onEach(store, "PTTL", keyOf("redlock", "latch", usual.name));
    expect(ms).toBeGreaterThan(86_000_000);
  });

  test("costs the requests and commands that are documented", async () => {
    const name = newResource("latch");
    const { redlock, links } = visitor(store);
    const latch = new CountDownLatch(redlock, name, { count: 2 });
    const total = () =>
      store.endpoints
        .map((_, index) => store.cost(index))
        .reduce((sum, cost) => [sum[0]! + cost.requests, sum[1]! + cost.billed], [0, 0]);
    const costOf = async (call: () => Promise<unknown>) => {
      await allArrived(links);
      const [requests, commands] = total();
      await call();
      await allArrived(links);
      const after = total();
      return [after[0]! - requests!, after[1]! - commands!].map((sum) => sum / endpoints);
    };
    await latch.inspect();
    expect(await costOf(() => latch.inspect())).toEqual([1, 2]);
    expect(await costOf(() => latch.arrive("a"))).toEqual([1, 6]);
    expect(await costOf(() => latch.arrive("a"))).toEqual([1, 3]);
    expect(await costOf(() => latch.arrive("b"))).toEqual([2, 11]);
    expect(await costOf(() => latch.wait())).toEqual([1, 2]);
  });
});

describe("arguments", async () => {
  const store = await stores([1], [])[0]!.open();
  const { redlock, links } = visitor(store);
  const wrong = (value: unknown) => value as never;
  const latch = new CountDownLatch(redlock, "l", { count: 1 });

  test.each<[string, () => unknown, typeof RangeError | typeof TypeError, RegExp]>([
    ["count 0", () => new CountDownLatch(redlock, "l", { count: 0 }), RangeError, /count.*0/],
    ["count 1.5", () => new CountDownLatch(redlock, "l", { count: 1.5 }), RangeError, /count.*1\.5/],
    ["count 1 001", () => new CountDownLatch(redlock, "l", { count: 1_001 }), RangeError, /count.*1001/],
    ["no count", () => new CountDownLatch(redlock, "l", wrong({})), TypeError, /count.*missing/],
    ["no name", () => new CountDownLatch(redlock, "", { count: 1 }), RangeError, /0/],
    ["ttl 9", () => new CountDownLatch(redlock, "l", { count: 1, ttl: 9 }), RangeError, /ttl.*9/],
    ["no id", () => latch.arrive(""), RangeError, /id.*0/],
    ["id 7", () => latch.arrive(wrong(7)), TypeError, /id.*number/],
    ["a long id", () => latch.arrive("x".repeat(256)), RangeError, /id.*256/],
    ["half an id", () => latch.arrive("\ud800"), RangeError, /surrogate/],
    ["wait −1", () => latch.wait({ wait: -1 }), RangeError, /wait.*-1/],
    ["signal {}", () => latch.wait({ signal: wrong({}) }), TypeError, /signal/],
    ["deadline NaN", () => latch.inspect({ deadline: Number.NaN }), RangeError, /deadline/],
  ])("%s is refused before anything is sent", async (_what, call, type, message) => {
    const error = await rejection((async () => call())());
    expect(error).toBeInstanceOf(type);
    expect((error as Error).message).toMatch(message);
    expect(links.flatMap(({ sent }) => sent)).toEqual([]);
  });
});
