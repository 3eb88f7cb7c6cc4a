/**
 * More than a lock: semaphores, fair, reentrant and read-write locks, latches, barriers, mailboxes and single jobs.
 *
 * @module redlock-edge/sync
 */
export { CountDownLatch, type CountDownLatchOptions, type LatchState } from "./count-down-latch.ts";
export { CyclicBarrier, type CyclicBarrierOptions } from "./cyclic-barrier.ts";
export { type DebounceOptions, type DebounceOutcome, debounce } from "./debounce.ts";
export {
  ArrivalsMissingError,
  LimitMismatchError,
  MailboxFullError,
  RefreshedNotWrittenError,
} from "./errors.ts";
export { FairLock } from "./fair-lock.ts";
export { forceRelease, type SynchronizerKind } from "./force-release.ts";
export type { ArrivalOptions } from "./internal/arrivals.ts";
export type { Hold, SyncOptions, WaitOptions } from "./internal/hold.ts";
export type {
  FailedMessage,
  MailboxHandler,
  MailboxTurn,
  Message,
  Messages,
} from "./internal/mailbox-turn.ts";
export {
  type Drained,
  Mailbox,
  type MailboxOptions,
  type MailboxState,
  type Posted,
  type Posting,
  type PostOptions,
} from "./mailbox.ts";
export { type OnceContext, type OnceOptions, type OnceOutcome, once } from "./once.ts";
export { ReadWriteLock } from "./read-write-lock.ts";
export { ReentrantLock, type ReentrantLockOptions } from "./reentrant-lock.ts";
export { type RefreshContext, type RefreshOptions, refreshOnce } from "./refresh-once.ts";
export { type Permit, Semaphore, type SemaphoreOptions } from "./semaphore.ts";
export {
  type Job,
  type ReplaceOutcome,
  type SingletonContext,
  type SingletonMode,
  type SingletonOptions,
  type SingletonOutcome,
  type SkipOutcome,
  singleton,
} from "./singleton.ts";
