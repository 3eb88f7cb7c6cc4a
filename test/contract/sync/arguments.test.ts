import { describe, expect, test } from "vitest";
import { memoryEndpoint } from "../../../local/src/memory/index.ts";
import { pubSub, Redlock } from "../../../src/index.ts";
import {
  CountDownLatch,
  CyclicBarrier,
  debounce,
  FairLock,
  forceRelease,
  once,
  ReadWriteLock,
  ReentrantLock,
  refreshOnce,
  Semaphore,
  singleton,
} from "../../../src/sync/index.ts";
import { rejection } from "../../support/outcomes.ts";
import { virtualWorld } from "../../support/virtual-client.ts";

// Wrong arguments of every synchronizer: the error names what is wrong, and nothing was sent.

type Case = [what: string, call: () => unknown, type: typeof RangeError | typeof TypeError, message: RegExp];

const { client } = virtualWorld();
const { redlock, links } = client();
const unreachable = () => expect.unreachable("it must not run");
/** What the compiler would refuse. */
const wrong = (value: unknown): never => value as never;
const days = 86_400_000;

const semaphore = new Semaphore(redlock, "s", { limit: 1 });
const reentrant = new ReentrantLock(redlock, "r");
const readWrite = new ReadWriteLock(redlock, "r");
const fair = new FairLock(redlock, "f");
const latch = new CountDownLatch(redlock, "l", { count: 1 });
const barrier = new CyclicBarrier(redlock, "b", { parties: 1 });
const newSemaphore = (options: object) => () => new Semaphore(redlock, "s", wrong(options));
const newReentrant = (options: object) => () => new ReentrantLock(redlock, "r", options);
const newLatch = (options: object) => () => new CountDownLatch(redlock, "l", wrong(options));
const newBarrier = (options: object) => () => new CyclicBarrier(redlock, "b", wrong(options));
const runOnce = (options: object) => () => once(redlock, "n", wrong(options), unreachable);
const runLast = (options: object) => () => debounce(redlock, "n", wrong(options), unreachable);

const parts = { read: unreachable, isFresh: unreachable, refresh: unreachable, write: unreachable };
const refreshWith = (options: object) => () => refreshOnce(redlock, "n", wrong({ ...parts, ...options }));

const runSingle = (options: object) => () => singleton(redlock, "n", wrong(options), unreachable);

const cases: Record<string, Case[]> = {
  Semaphore: [
    ["limit 0", newSemaphore({ limit: 0 }), RangeError, /limit.*0/],
    ["limit 1.5", newSemaphore({ limit: 1.5 }), RangeError, /limit.*1\.5/],
    ["limit 1 001", newSemaphore({ limit: 1_001 }), RangeError, /limit.*1001/],
    ["limit '2'", newSemaphore({ limit: "2" }), TypeError, /limit.*"2"/],
    ["no options", () => new Semaphore(redlock, "s", wrong(undefined)), TypeError, /options.*missing/],
    ["no name", () => new Semaphore(redlock, "", { limit: 1 }), RangeError, /0/],
    [
      "several names",
      () => new Semaphore(redlock, wrong(["a", "b"]), { limit: 1 }),
      TypeError,
      /^name must be a string/,
    ],
    ["no client", () => new Semaphore(wrong({}), "s", { limit: 1 }), TypeError, /redlock/],
    ["ttl 9", newSemaphore({ limit: 1, ttl: 9 }), RangeError, /ttl.*9/],
    ["ttl 9 in a call", () => semaphore.acquire({ ttl: 9 }), RangeError, /ttl.*9/],
    ["wait −1", () => semaphore.acquire({ wait: -1 }), RangeError, /wait.*-1/],
    ["signal {}", () => semaphore.tryAcquire({ signal: wrong({}) }), TypeError, /signal/],
    ["deadline NaN", () => semaphore.acquire({ deadline: Number.NaN }), RangeError, /deadline/],
  ],
  ReentrantLock: [
    ["owner ''", newReentrant({ owner: "" }), RangeError, /owner.*0/],
    ["owner 1", newReentrant({ owner: 1 }), TypeError, /owner.*number/],
    ["owner null", newReentrant({ owner: null }), TypeError, /owner.*null/],
    ["a long owner", newReentrant({ owner: "x".repeat(256) }), RangeError, /owner.*256/],
    ["half a pair", newReentrant({ owner: "\ud83d" }), RangeError, /owner.*pair/],
    ["no name", () => new ReentrantLock(redlock, ""), RangeError, /0/],
    [
      "several names",
      () => new ReentrantLock(redlock, wrong(["a", "b"])),
      TypeError,
      /^name must be a string/,
    ],
    ["ttl 9", newReentrant({ ttl: 9 }), RangeError, /ttl.*9/],
    ["ttl 9 in a call", () => reentrant.acquire({ ttl: 9 }), RangeError, /ttl.*9/],
    ["wait −1", () => reentrant.acquire({ wait: -1 }), RangeError, /wait.*-1/],
    ["signal {}", () => reentrant.tryAcquire({ signal: wrong({}) }), TypeError, /signal/],
    ["deadline NaN", () => reentrant.acquire({ deadline: Number.NaN }), RangeError, /deadline/],
  ],
  ReadWriteLock: [
    ["no name", () => new ReadWriteLock(redlock, ""), RangeError, /0/],
    [
      "several names",
      () => new ReadWriteLock(redlock, wrong(["a", "b"])),
      TypeError,
      /^name must be a string/,
    ],
    ["ttl 9", () => new ReadWriteLock(redlock, "r", { ttl: 9 }), RangeError, /ttl.*9/],
    ["ttl 9 of a reader", () => readWrite.acquireRead({ ttl: 9 }), RangeError, /ttl.*9/],
    ["ttl 9 of a writer", () => readWrite.acquireWrite({ ttl: 9 }), RangeError, /ttl.*9/],
    ["wait −1", () => readWrite.acquireWrite({ wait: -1 }), RangeError, /wait.*-1/],
    ["signal {}", () => readWrite.tryAcquireRead({ signal: wrong({}) }), TypeError, /signal/],
    ["signal {} of a writer", () => readWrite.tryAcquireWrite({ signal: wrong({}) }), TypeError, /signal/],
    ["deadline NaN", () => readWrite.acquireRead({ deadline: Number.NaN }), RangeError, /deadline/],
  ],
  FairLock: [
    ["no name", () => new FairLock(redlock, ""), RangeError, /0/],
    ["several names", () => new FairLock(redlock, wrong(["a", "b"])), TypeError, /^name must be a string/],
    ["ttl 9", () => new FairLock(redlock, "f", { ttl: 9 }), RangeError, /ttl.*9/],
    ["ttl 9 in a call", () => fair.acquire({ ttl: 9 }), RangeError, /ttl.*9/],
    ["wait −1", () => fair.acquire({ wait: -1 }), RangeError, /wait.*-1/],
    ["backoff.min 0", () => fair.acquire({ backoff: { min: 0 } }), RangeError, /backoff/],
    ["signal {}", () => fair.tryAcquire({ signal: wrong({}) }), TypeError, /signal/],
    ["deadline NaN", () => fair.acquire({ deadline: Number.NaN }), RangeError, /deadline/],
  ],
  CountDownLatch: [
    ["count 0", newLatch({ count: 0 }), RangeError, /count.*0/],
    ["count 1.5", newLatch({ count: 1.5 }), RangeError, /count.*1\.5/],
    ["count 1 001", newLatch({ count: 1_001 }), RangeError, /count.*1001/],
    ["no count", newLatch({}), TypeError, /count.*missing/],
    ["no options", () => new CountDownLatch(redlock, "l", wrong(undefined)), TypeError, /options.*missing/],
    ["no name", () => new CountDownLatch(redlock, "", { count: 1 }), RangeError, /0/],
    ["ttl 9", newLatch({ count: 1, ttl: 9 }), RangeError, /ttl.*9/],
    ["no id", () => latch.arrive(""), RangeError, /id.*0/],
    ["id 7", () => latch.arrive(wrong(7)), TypeError, /id.*number/],
    ["a long id", () => latch.arrive("x".repeat(256)), RangeError, /id.*256/],
    ["half an id", () => latch.arrive("\ud800"), RangeError, /surrogate/],
    ["wait −1", () => latch.wait({ wait: -1 }), RangeError, /wait.*-1/],
    ["signal {}", () => latch.wait({ signal: wrong({}) }), TypeError, /signal/],
    ["deadline NaN", () => latch.inspect({ deadline: Number.NaN }), RangeError, /deadline/],
  ],
  CyclicBarrier: [
    ["parties 0", newBarrier({ parties: 0 }), RangeError, /parties.*0/],
    ["parties 1 001", newBarrier({ parties: 1_001 }), RangeError, /parties.*1001/],
    ["parties '2'", newBarrier({ parties: "2" }), TypeError, /parties.*"2"/],
    ["no options", () => new CyclicBarrier(redlock, "b", wrong(undefined)), TypeError, /options.*missing/],
    ["no name", () => new CyclicBarrier(redlock, "", { parties: 1 }), RangeError, /0/],
    ["ttl 9", newBarrier({ parties: 1, ttl: 9 }), RangeError, /ttl.*9/],
    ["no id", () => barrier.arriveAndWait(""), RangeError, /id.*0/],
    ["id 7", () => barrier.arriveAndWait(wrong(7)), TypeError, /id.*number/],
    ["wait −1", () => barrier.arriveAndWait("a", { wait: -1 }), RangeError, /wait.*-1/],
    ["signal {}", () => barrier.arriveAndWait("a", { signal: wrong({}) }), TypeError, /signal/],
  ],
  once: [
    ["no every", runOnce({}), TypeError, /every.*missing/],
    ["every 19", runOnce({ every: 19 }), RangeError, /every.*19/],
    ["every 25 days", runOnce({ every: 25 * days }), RangeError, /every/],
    ["ttl over every", runOnce({ every: 1_000, ttl: 1_001 }), RangeError, /ttl.*1001/],
    ["ttl 9", runOnce({ every: 1_000, ttl: 9 }), RangeError, /ttl.*9/],
    ["no options", () => once(redlock, "n", wrong(undefined), unreachable), TypeError, /options.*missing/],
    ["no name", () => once(redlock, "", { every: 1_000 }, unreachable), RangeError, /0/],
    [
      "no routine",
      () => once(redlock, "n", { every: 1_000 }, wrong(undefined)),
      TypeError,
      /routine.*function/,
    ],
    ["no client", () => once(wrong({}), "n", { every: 1_000 }, unreachable), TypeError, /redlock/],
    ["wait −1", runOnce({ every: 1_000, wait: -1 }), RangeError, /wait/],
    ["wakeUp", runOnce({ every: 1_000, wakeUp: pubSub }), TypeError, /^once .*"wakeUp"; .*locks/],
    ["signal {}", runOnce({ every: 1_000, signal: {} }), TypeError, /signal/],
  ],
  debounce: [
    ["no window", runLast({}), TypeError, /window.*missing/],
    ["window 0", runLast({ window: 0 }), RangeError, /window.*0/],
    ["window 1.5", runLast({ window: 1.5 }), RangeError, /1\.5/],
    ["window 2³⁰", runLast({ window: 2 ** 30 }), RangeError, /window/],
    ["ttl 9", runLast({ window: 5, ttl: 9 }), RangeError, /ttl.*9/],
    ["ttl 2³⁰", runLast({ window: 5, ttl: 2 ** 30 }), RangeError, /ttl/],
    [
      "no options",
      () => debounce(redlock, "n", wrong(undefined), unreachable),
      TypeError,
      /options.*missing/,
    ],
    ["no name", () => debounce(redlock, "", { window: 5 }, unreachable), RangeError, /0/],
    ["no routine", () => debounce(redlock, "n", { window: 5 }, wrong(7)), TypeError, /routine.*function/],
    ["signal {}", runLast({ window: 5, signal: {} }), TypeError, /signal/],
    ["wakeUp", runLast({ window: 5, wakeUp: pubSub }), TypeError, /^debounce .*"wakeUp"/],
  ],
  refreshOnce: [
    ["no options", () => refreshOnce(redlock, "n", wrong(undefined)), TypeError, /options.*missing/],
    ["a number as options", () => refreshOnce(redlock, "n", wrong(5)), TypeError, /wait: 5/],
    ["no key", () => refreshOnce(redlock, "", wrong(parts)), RangeError, /key.*0/],
    ["no client", () => refreshOnce(wrong({}), "n", wrong(parts)), TypeError, /redlock/],
    ...Object.keys(parts).map(
      (part): Case => [
        `no ${part}`,
        refreshWith({ [part]: undefined }),
        TypeError,
        new RegExp(`^${part} .*function`),
      ],
    ),
    ["seal alone", refreshWith({ seal: unreachable }), TypeError, /^open .*function/],
    ["open alone", refreshWith({ open: unreachable }), TypeError, /^seal .*function/],
    ["retention 999", refreshWith({ retention: 999 }), RangeError, /retention.*999/],
    ["retention 31 days", refreshWith({ retention: 31 * days }), RangeError, /retention/],
    ["autoExtend", refreshWith({ autoExtend: false }), TypeError, /^refreshOnce .*autoExtend/],
    ["ttl 9", refreshWith({ ttl: 9 }), RangeError, /ttl.*9/],
    ["signal {}", refreshWith({ signal: {} }), TypeError, /signal/],
    ["deadline NaN", refreshWith({ deadline: Number.NaN }), RangeError, /deadline/],
  ],
  singleton: [
    ["no mode", runSingle({}), RangeError, /mode.*"skip"/],
    ["another mode", runSingle({ mode: "queue" }), RangeError, /mode.*"cancel"/],
    ["no options", runSingle(wrong(undefined)), TypeError, /options.*missing/],
    ["no name", () => singleton(redlock, "", { mode: "skip" }, unreachable), RangeError, /name.*0/],
    ["no job", () => singleton(redlock, "n", { mode: "skip" }, wrong(7)), TypeError, /^job .*function/],
    ["no client", () => singleton(wrong({}), "n", { mode: "skip" }, unreachable), TypeError, /redlock/],
    ["autoExtend", runSingle({ mode: "skip", autoExtend: false }), TypeError, /^singleton .*autoExtend/],
    ["wakeUp", runSingle({ mode: "skip", wakeUp: pubSub }), TypeError, /^singleton .*"wakeUp"; .*locks/],
    ["wait −1", runSingle({ mode: "cancel", wait: -1 }), RangeError, /wait.*-1/],
    ["ttl 9", runSingle({ mode: "coalesce", ttl: 9 }), RangeError, /ttl.*9/],
    ["signal {}", runSingle({ mode: "skip", signal: {} }), TypeError, /signal/],
    ["deadline NaN", runSingle({ mode: "skip", deadline: Number.NaN }), RangeError, /deadline/],
  ],
  forceRelease: [
    ["another kind", () => forceRelease(redlock, wrong("Lock"), "n"), TypeError, /Lock/],
    ["an inherited kind", () => forceRelease(redlock, wrong("toString"), "n"), TypeError, /toString/],
    ["no kind", () => forceRelease(redlock, wrong(undefined), "n"), TypeError, /undefined/],
    ["no name", () => forceRelease(redlock, "once", ""), RangeError, /0/],
    ["timeout 0", () => forceRelease(redlock, "once", "n", { timeout: 0 }), RangeError, /timeout/],
  ],
};

test("an option that is undefined changes nothing, also where it does not belong", async () => {
  const none = { fencing: undefined, token: undefined, autoExtend: undefined, runtime: undefined };
  expect(new Semaphore(redlock, "u", { limit: 1, ...none })).toBeInstanceOf(Semaphore);
  expect(new CountDownLatch(redlock, "u", { count: 1, ...none })).toBeInstanceOf(CountDownLatch);
  expect(new Redlock({ endpoints: [memoryEndpoint()], ...none })).toBeInstanceOf(Redlock);
});

describe.each(Object.entries(cases))("%s", (_, wrongs) => {
  test.each(wrongs)("%s is refused before anything is sent", async (_what, call, type, message) => {
    const error = await rejection((async () => call())());
    expect(error).toBeInstanceOf(type);
    expect((error as Error).message).toMatch(message);
    expect(links.flatMap(({ sent }) => sent)).toEqual([]);
  });
});

test("the least and the greatest numbers are allowed", async () => {
  const { runtime, client: newClient } = virtualWorld();
  const { redlock: other } = newClient();
  const signal = AbortSignal.abort("nothing is sent");
  for (const limit of [1, 1_000]) expect(new Semaphore(other, "s", { limit }).limit).toBe(limit);
  for (const count of [1, 1_000]) expect(new CountDownLatch(other, "l", { count }).count).toBe(count);
  for (const parties of [1, 1_000]) expect(new CyclicBarrier(other, "b", { parties }).parties).toBe(parties);
  for (const every of [20, 2_147_483_647]) {
    expect(await rejection(once(other, "n", { every, signal }, unreachable))).toBe(signal.reason);
  }
  for (const number of [1, 2 ** 30 - 1]) {
    const options = { window: number, ttl: Math.max(10, number), signal };
    expect(await rejection(debounce(other, "n", options, unreachable))).toBe(signal.reason);
  }
  expect(runtime.pending).toBe(0);
});
