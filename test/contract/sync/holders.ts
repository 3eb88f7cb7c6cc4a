import type { Redlock } from "../../../src/index.ts";
import type { Script } from "../../../src/redis/script.ts";
import {
  FairLock,
  type Hold,
  ReadWriteLock,
  ReentrantLock,
  Semaphore,
  type SynchronizerKind,
  type SyncOptions,
} from "../../../src/sync/index.ts";
import { memberScript } from "../../../src/sync/internal/member.lua.ts";
import { queueScript } from "../../../src/sync/internal/queue.lua.ts";
import { slotScript } from "../../../src/sync/internal/slot.lua.ts";

type Acquire<Result> = (
  redlock: Redlock,
  name: string,
  options?: SyncOptions,
  call?: { readonly deadline?: number; readonly signal?: AbortSignal },
) => Promise<Result>;

/** A synchronizer that is held for a ttl, by one at a time as it is used here. */
export interface Holder {
  readonly title: string;
  readonly kind: SynchronizerKind;
  readonly script: Script;
  /** The kinds of keys that stand while it is held; the last is that of the hold. */
  readonly keys: readonly [string, ...string[]];
  readonly acquire: Acquire<Hold>;
  /** Somebody whom the holder keeps out. */
  readonly another: Acquire<Hold>;
  readonly tryAnother: Acquire<Hold | null>;
  /** Those who wait learn when its ttl ends, instead of asking at the end of a pause. */
  readonly tellsItsEnd: boolean;
  /** Commands billed for an acquire, an extension, a refusal of the other and a release, by endpoint. */
  costs(isNative: boolean): readonly [number, number, number, number];
}

const semaphore = (redlock: Redlock, name: string, options?: SyncOptions) =>
  new Semaphore(redlock, name, { limit: 1, ...options });

export const holders: readonly Holder[] = [
  {
    title: "a semaphore",
    kind: "Semaphore",
    script: slotScript,
    keys: ["limit", "slot:0"],
    acquire: (redlock, name, options, call) => semaphore(redlock, name, options).acquire(call),
    another: (redlock, name, options, call) => semaphore(redlock, name, options).acquire(call),
    tryAnother: (redlock, name, options, call) => semaphore(redlock, name, options).tryAcquire(call),
    tellsItsEnd: false,
    costs: (isNative) => [5, 5, 2, isNative ? 1 : 3],
  },
  {
    title: "a read-write lock, to read",
    kind: "ReadWriteLock",
    script: memberScript,
    keys: ["read-write"],
    acquire: (redlock, name, options, call) => new ReadWriteLock(redlock, name, options).acquireRead(call),
    another: (redlock, name, options, call) => new ReadWriteLock(redlock, name, options).acquireWrite(call),
    tryAnother: (redlock, name, options, call) =>
      new ReadWriteLock(redlock, name, options).tryAcquireWrite(call),
    tellsItsEnd: true,
    costs: () => [8, 7, 4, 5],
  },
  {
    title: "a read-write lock, to write",
    kind: "ReadWriteLock",
    script: memberScript,
    keys: ["read-write"],
    acquire: (redlock, name, options, call) => new ReadWriteLock(redlock, name, options).acquireWrite(call),
    another: (redlock, name, options, call) => new ReadWriteLock(redlock, name, options).acquireRead(call),
    tryAnother: (redlock, name, options, call) =>
      new ReadWriteLock(redlock, name, options).tryAcquireRead(call),
    tellsItsEnd: true,
    costs: () => [7, 7, 6, 6],
  },
  {
    title: "a reentrant lock",
    kind: "ReentrantLock",
    script: memberScript,
    keys: ["reentrant"],
    acquire: (redlock, name, options, call) => new ReentrantLock(redlock, name, options).acquire(call),
    another: (redlock, name, options, call) => new ReentrantLock(redlock, name, options).acquire(call),
    tryAnother: (redlock, name, options, call) => new ReentrantLock(redlock, name, options).tryAcquire(call),
    tellsItsEnd: true,
    costs: () => [7, 7, 4, 5],
  },
  {
    title: "a fair lock",
    kind: "FairLock",
    script: queueScript,
    keys: ["fair"],
    acquire: (redlock, name, options, call) => new FairLock(redlock, name, options).acquire(call),
    another: (redlock, name, options, call) => new FairLock(redlock, name, options).acquire(call),
    tryAnother: (redlock, name, options, call) => new FairLock(redlock, name, options).tryAcquire(call),
    tellsItsEnd: false,
    costs: (isNative) => [3, isNative ? 1 : 3, 3, isNative ? 1 : 3],
  },
];
