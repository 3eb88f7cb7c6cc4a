import { expect, test } from "vitest";
import { pubSub } from "../../../src/index.ts";
import {
  CountDownLatch,
  CyclicBarrier,
  debounce,
  forceRelease,
  once,
  ReentrantLock,
  refreshOnce,
  Semaphore,
  singleton,
} from "../../../src/sync/index.ts";
import { rejection } from "../../support/outcomes.ts";
import { virtualWorld } from "../../support/virtual-client.ts";

// The bounds of what only synchronizers take. What no function takes is in test/unit/mistakes.test.ts.

const { client, runtime } = virtualWorld();
const { redlock, links } = client();
const unreachable = () => expect.unreachable("it must not run");
const days = 86_400_000;
const parts = { read: unreachable, isFresh: unreachable, refresh: unreachable, write: unreachable };

/** By function and option: a call with a value of it. */
const calls = {
  "Semaphore limit": (limit) => new Semaphore(redlock, "s", { limit }),
  "CountDownLatch count": (count) => new CountDownLatch(redlock, "l", { count }),
  "CyclicBarrier parties": (parties) => new CyclicBarrier(redlock, "b", { parties }),
  "CountDownLatch id": (id) => new CountDownLatch(redlock, "l", { count: 1 }).arrive(id),
  "CyclicBarrier id": (id) => new CyclicBarrier(redlock, "b", { parties: 1 }).arriveAndWait(id),
  "ReentrantLock owner": (owner) => new ReentrantLock(redlock, "r", { owner }),
  "once every": (every) => once(redlock, "n", { every }, unreachable),
  "once ttl": (ttl) => once(redlock, "n", { every: 1_000, ttl }, unreachable),
  "once wakeUp": (wakeUp) => once(redlock, "n", { every: 1_000, wakeUp } as never, unreachable),
  "debounce window": (window) => debounce(redlock, "n", { window }, unreachable),
  "debounce ttl": (ttl) => debounce(redlock, "n", { window: 5, ttl }, unreachable),
  "debounce wakeUp": (wakeUp) => debounce(redlock, "n", { window: 5, wakeUp } as never, unreachable),
  "refreshOnce retention": (retention) => refreshOnce(redlock, "n", { ...parts, retention }),
  "refreshOnce open": (seal) => refreshOnce(redlock, "n", { ...parts, seal }),
  "refreshOnce seal": (open) => refreshOnce(redlock, "n", { ...parts, open }),
  "refreshOnce autoExtend": (autoExtend) => refreshOnce(redlock, "n", { ...parts, autoExtend } as never),
  "singleton mode": (mode) => singleton(redlock, "n", { mode }, unreachable),
  "singleton autoExtend": (autoExtend) =>
    singleton(redlock, "n", { mode: "skip", autoExtend } as never, unreachable),
  "singleton wakeUp": (wakeUp) => singleton(redlock, "n", { mode: "skip", wakeUp } as never, unreachable),
  "forceRelease kind": (kind) => forceRelease(redlock, kind, "n"),
} satisfies Record<string, (value: never) => unknown>;

test.each<[call: keyof typeof calls, ...wrong: unknown[]]>([
  ["Semaphore limit", 0, 1.5, 1_001, "2"],
  ["CountDownLatch count", 0, 1.5, 1_001, undefined],
  ["CyclicBarrier parties", 0, 1_001, "2"],
  ["CountDownLatch id", "", 7, "x".repeat(256), "\ud800"],
  ["CyclicBarrier id", "", 7],
  ["ReentrantLock owner", "", 1, null, "x".repeat(256), "\ud83d"],
  ["once every", undefined, 19, 25 * days],
  ["once ttl", 9, 1_001],
  ["once wakeUp", pubSub],
  ["debounce window", undefined, 0, 1.5, 2 ** 30],
  ["debounce ttl", 9, 2 ** 30],
  ["debounce wakeUp", pubSub],
  ["refreshOnce retention", 999, 31 * days],
  ["refreshOnce open", unreachable],
  ["refreshOnce seal", unreachable],
  ["refreshOnce autoExtend", false],
  ["singleton mode", undefined, "queue"],
  ["singleton autoExtend", false],
  ["singleton wakeUp", pubSub],
  ["forceRelease kind", "Lock", "toString", undefined],
])("%s: what is wrong is refused before anything is sent", async (call, ...wrong) => {
  for (const value of wrong) {
    const error = await rejection((async () => calls[call](value as never))());
    expect([error instanceof TypeError, error instanceof RangeError]).toContain(true);
    if (call !== "forceRelease kind") expect(String(error)).toContain(call.split(" ")[1]);
  }
  expect(links.flatMap(({ sent }) => sent)).toEqual([]);
});

test("the least and the greatest numbers are allowed", async () => {
  const signal = AbortSignal.abort("nothing is sent");
  for (const limit of [1, 1_000]) expect(new Semaphore(redlock, "s", { limit }).limit).toBe(limit);
  for (const count of [1, 1_000]) expect(new CountDownLatch(redlock, "l", { count }).count).toBe(count);
  for (const parties of [1, 1_000])
    expect(new CyclicBarrier(redlock, "b", { parties }).parties).toBe(parties);
  for (const every of [20, 2_147_483_647]) {
    expect(await rejection(once(redlock, "n", { every, signal }, unreachable))).toBe(signal.reason);
  }
  for (const number of [1, 2 ** 30 - 1]) {
    const options = { window: number, ttl: Math.max(10, number), signal };
    expect(await rejection(debounce(redlock, "n", options, unreachable))).toBe(signal.reason);
  }
  expect(runtime.pending).toBe(0);
});
