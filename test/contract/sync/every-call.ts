import { expect } from "vitest";
import type { Redlock } from "../../../src/index.ts";
import {
  CountDownLatch,
  CyclicBarrier,
  debounce,
  FairLock,
  Mailbox,
  type MailboxHandler,
  once,
  ReadWriteLock,
  ReentrantLock,
  refreshOnce,
  Semaphore,
  singleton,
} from "../../../src/sync/index.ts";

/** `work`: what it runs. Default: nothing may run. */
type Call = (redlock: Redlock, options: never, work?: () => Promise<unknown>) => Promise<unknown>;
type Calls = Readonly<Record<string, Call>>;

export const unreachable = () => expect.unreachable("it must not run");

/** The functions that `refreshOnce` needs. */
export const parts = { read: () => 0, isFresh: () => false, refresh: unreachable, write: unreachable };

const semaphore = (redlock: Redlock) => new Semaphore(redlock, "n", { limit: 2 });
const readWrite = (redlock: Redlock) => new ReadWriteLock(redlock, "n");
const latch = (redlock: Redlock) => new CountDownLatch(redlock, "n", { count: 2 });
const mailbox = (redlock: Redlock) => new Mailbox(redlock, "n");
const handling =
  (work: () => unknown): MailboxHandler<unknown> =>
  async (messages) => {
    for await (const _ of messages) await work();
  };

/** Every call of a synchronizer that takes options. */
export const everyCall: Calls = {
  "Semaphore.acquire": (redlock, options) => semaphore(redlock).acquire(options),
  "ReentrantLock.acquire": (redlock, options) => new ReentrantLock(redlock, "n").acquire(options),
  "ReadWriteLock.acquireRead": (redlock, options) => readWrite(redlock).acquireRead(options),
  "ReadWriteLock.acquireWrite": (redlock, options) => readWrite(redlock).acquireWrite(options),
  "FairLock.acquire": (redlock, options) => new FairLock(redlock, "n").acquire(options),
  "CountDownLatch.arrive": (redlock, options) => latch(redlock).arrive("a", options),
  "CountDownLatch.wait": (redlock, options) => latch(redlock).wait(options),
  "CountDownLatch.inspect": (redlock, options) => latch(redlock).inspect(options),
  "CyclicBarrier.arriveAndWait": (redlock, options) =>
    new CyclicBarrier(redlock, "n", { parties: 2 }).arriveAndWait("a", options),
  "Mailbox.post": (redlock, options, work = unreachable) =>
    mailbox(redlock).post({ id: "a", value: 1 }, handling(work), options),
  "Mailbox.drain": (redlock, options, work = unreachable) => mailbox(redlock).drain(handling(work), options),
  once: (redlock, options: object, work = unreachable) =>
    once(redlock, "n", { every: 60_000, ...options }, work),
  debounce: (redlock, options: object, work = unreachable) =>
    debounce(redlock, "n", { window: 50, ...options }, work),
  refreshOnce: (redlock, options: object, work = unreachable) =>
    refreshOnce<unknown>(redlock, "n", { ...parts, write: () => true, refresh: work, ...options }),
  ...Object.fromEntries(
    (["skip", "coalesce", "cancel"] as const).map((mode) => [
      `singleton, ${mode}`,
      (redlock: Redlock, options: object, work: () => unknown = unreachable) =>
        singleton(redlock, "n", { mode, ...options }, work),
    ]),
  ),
};

/** Those that make one attempt. */
export const everyTry: Calls = {
  "Semaphore.tryAcquire": (redlock, options) => semaphore(redlock).tryAcquire(options),
  "ReentrantLock.tryAcquire": (redlock, options) => new ReentrantLock(redlock, "n").tryAcquire(options),
  "ReadWriteLock.tryAcquireRead": (redlock, options) => readWrite(redlock).tryAcquireRead(options),
  "ReadWriteLock.tryAcquireWrite": (redlock, options) => readWrite(redlock).tryAcquireWrite(options),
  "FairLock.tryAcquire": (redlock, options) => new FairLock(redlock, "n").tryAcquire(options),
};
