import { describe, expect, test } from "vitest";
import { QuorumError, Redlock } from "../../src/index.ts";
import { ReadWriteLock } from "../../src/sync/index.ts";
import { rejection } from "../support/until.ts";
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

test.each([1, 2, 3, 5])("nonsense from all of %i endpoints is no grant", async (count) => {
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
