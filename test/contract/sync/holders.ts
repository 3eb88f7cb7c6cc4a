import type { Redlock } from "../../../src/index.ts";
import {
  FairLock,
  type Hold,
  ReadWriteLock,
  ReentrantLock,
  Semaphore,
  type SynchronizerKind,
  type SyncOptions,
} from "../../../src/sync/index.ts";

type Acquire<Result> = (
  redlock: Redlock,
  name: string,
  options?: SyncOptions,
  call?: { readonly deadline?: number; readonly signal?: AbortSignal; readonly note?: string },
) => Promise<Result>;

/** A synchronizer that is held for a ttl, by one at a time as it is used here. */
export interface Holder {
  readonly title: string;
  readonly kind: SynchronizerKind;
  /** The kinds of keys that stand while it is held; the last is that of the hold. */
  readonly keys: readonly [string, ...string[]];
  readonly acquire: Acquire<Hold>;
  /** Somebody whom the holder keeps out. */
  readonly another: Acquire<Hold>;
  readonly tryAnother: Acquire<Hold | null>;
  /** Those who wait learn when its ttl ends, instead of asking at the end of a pause. */
  readonly tellsItsEnd: boolean;
  /** Commands billed for an acquire, an extension, a refusal of the other and a release, by endpoint. */
  costs(release: 1 | 3): readonly [number, number, number, number];
}

type Acquires = { acquire(call?: object): Promise<Hold>; tryAcquire(): Promise<Hold | null> };

/** How somebody acquires a synchronizer, and others do. */
function acquirers(open: (...args: Parameters<typeof semaphore>) => Acquires, other = open) {
  const acquire: Acquire<Hold> = (redlock, name, options, call) => open(redlock, name, options).acquire(call);
  const another: Acquire<Hold> = (redlock, name, options, call) =>
    other(redlock, name, options).acquire(call);
  const tryAnother: Acquire<Hold | null> = (redlock, name, options) =>
    other(redlock, name, options).tryAcquire();
  return { acquire, another, tryAnother };
}

const semaphore = (redlock: Redlock, name: string, options?: SyncOptions): Acquires =>
  new Semaphore(redlock, name, { limit: 1, ...options });
const reading: typeof semaphore = (redlock, name, options) => {
  const lock = new ReadWriteLock(redlock, name, options);
  return { acquire: (call) => lock.acquireRead(call), tryAcquire: () => lock.tryAcquireRead() };
};
const writing: typeof semaphore = (redlock, name, options) => {
  const lock = new ReadWriteLock(redlock, name, options);
  return { acquire: (call) => lock.acquireWrite(call), tryAcquire: () => lock.tryAcquireWrite() };
};

export const holders: readonly Holder[] = [
  {
    title: "a semaphore",
    kind: "Semaphore",
    keys: ["limit", "slot:0"],
    ...acquirers(semaphore),
    tellsItsEnd: false,
    costs: (release) => [5, 5, 2, release],
  },
  {
    title: "a read-write lock, to read",
    kind: "ReadWriteLock",
    keys: ["read-write"],
    ...acquirers(reading, writing),
    tellsItsEnd: true,
    costs: () => [8, 7, 4, 5],
  },
  {
    title: "a read-write lock, to write",
    kind: "ReadWriteLock",
    keys: ["read-write"],
    ...acquirers(writing, reading),
    tellsItsEnd: true,
    costs: () => [7, 7, 6, 6],
  },
  {
    title: "a reentrant lock",
    kind: "ReentrantLock",
    keys: ["reentrant"],
    ...acquirers((redlock, name, options) => new ReentrantLock(redlock, name, options)),
    tellsItsEnd: true,
    costs: () => [7, 7, 4, 5],
  },
  {
    title: "a fair lock",
    kind: "FairLock",
    keys: ["fair"],
    ...acquirers((redlock, name, options) => new FairLock(redlock, name, options)),
    tellsItsEnd: false,
    costs: (release) => [3, release, 3, release],
  },
];
