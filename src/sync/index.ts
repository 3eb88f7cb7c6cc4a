export { type DebounceOptions, type DebounceOutcome, debounce } from "./debounce.ts";
export { LimitMismatchError } from "./errors.ts";
export type { Hold, SyncOptions, WaitOptions } from "./hold.ts";
export { type OnceOptions, type OnceOutcome, once, type Turn } from "./once.ts";
export { ReadWriteLock } from "./read-write-lock.ts";
export { ReentrantLock, type ReentrantLockOptions } from "./reentrant-lock.ts";
export { type Permit, Semaphore, type SemaphoreOptions } from "./semaphore.ts";
