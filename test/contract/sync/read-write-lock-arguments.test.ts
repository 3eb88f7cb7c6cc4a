import { describe, expect, test } from "vitest";
import { type Backoff, QuorumError, Redlock } from "../../../src/index.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { ReadWriteLock } from "../../../src/sync/index.ts";
import { memoryEndpoint } from "../../../src/testing/index.ts";
import { virtualRuntime } from "../../robustness/fuzz/virtual-runtime.ts";
import { rejection } from "../../support/outcomes.ts";
import { stores, visitor } from "./stand.ts";

describe("arguments", async () => {
  const store = await stores([1], [])[0]!.open();
  const { redlock, links } = visitor(store);
  const wrong = (value: unknown) => value as never;
  const lock = new ReadWriteLock(redlock, "r");

  test.each<[string, () => unknown, typeof RangeError | typeof TypeError, RegExp]>([
    ["no name", () => new ReadWriteLock(redlock, ""), RangeError, /0/],
    ["several names", () => new ReadWriteLock(redlock, wrong(["a", "b"])), TypeError, /resource/],
    ["ttl 9", () => new ReadWriteLock(redlock, "r", { ttl: 9 }), RangeError, /ttl.*9/],
    ["ttl 9 of a reader", () => lock.acquireRead({ ttl: 9 }), RangeError, /ttl.*9/],
    ["ttl 9 of a writer", () => lock.acquireWrite({ ttl: 9 }), RangeError, /ttl.*9/],
    ["wait −1", () => lock.acquireWrite({ wait: -1 }), RangeError, /wait.*-1/],
    ["signal {}", () => lock.tryAcquireRead({ signal: wrong({}) }), TypeError, /signal/],
    ["signal {} of a writer", () => lock.tryAcquireWrite({ signal: wrong({}) }), TypeError, /signal/],
    ["deadline NaN", () => lock.acquireRead({ deadline: Number.NaN }), RangeError, /deadline/],
  ])("%s is refused before anything is sent", async (_what, call, type, message) => {
    const error = await rejection((async () => call())());
    expect(error).toBeInstanceOf(type);
    expect((error as Error).message).toMatch(message);
    expect(links.flatMap(({ sent }) => sent)).toEqual([]);
  });
});

test.each([1, 2, 3, 5])("unexpected replies from all of %i endpoints grant nothing", async (count) => {
  const endpoints = Array.from({ length: count }, (_, index) => ({
    name: `endpoint-${index}`,
    dialect: "redis" as const,
    send: async () => "OK",
  }));
  const lock = new ReadWriteLock(new Redlock({ endpoints, wait: 0 }), "r");
  for (const call of [lock.tryAcquireRead(), lock.tryAcquireWrite(), lock.acquireWrite({ wait: 20 })]) {
    const error = await rejection(call);
    expect(error).toBeInstanceOf(QuorumError);
    expect((error as QuorumError).votes.map(({ cause }) => cause?.kind)).toContain("malformed");
  }
});

test.each<[string, Backoff]>([
  ["default pauses", {}],
  ["long pauses", () => 7_000],
  ["no pauses", () => 0],
])("a writer that lives stays announced between its rounds, with %s", async (_, backoff) => {
  const runtime = virtualRuntime();
  const endpoint = memoryEndpoint({ runtime, faults: [{ fault: "delay", ms: 40 }] });
  const redlock = new Redlock({ endpoints: [endpoint], runtime, backoff });
  const lock = new ReadWriteLock(redlock, "catalogue");
  const key = keyOf("redlock", "writers", "catalogue");
  const announced = () =>
    Number(endpoint.engine.execute(["ZCOUNT", key, Math.floor(runtime.now()) + 1, "+inf"]));
  let first = 0;
  let gaps = 0;
  let isOver = false;
  function watch(): void {
    if (isOver) return;
    if (announced() > 0) first ||= runtime.monotonic();
    // At the end it removes its announcement.
    else if (first && runtime.monotonic() < 29_000) gaps += 1;
    runtime.timer(10, watch);
  }
  await runtime.settle(() => lock.acquireRead({ ttl: 600_000 }));
  watch();
  const outcome = await runtime.settle(() => lock.acquireWrite({ wait: 30_000 }));
  isOver = true;
  expect(outcome).toHaveProperty("error.code", "LOCK_HELD");
  expect([first > 0, gaps]).toEqual([true, 0]);
});
