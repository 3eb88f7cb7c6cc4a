export { type DebounceOptions, type DebounceOutcome, debounce } from "./debounce.ts";
export { LimitMismatchError } from "./errors.ts";
export type { Hold, SyncOptions, WaitOptions } from "./hold.ts";
export { type OnceOptions, type OnceOutcome, once, type Turn } from "./once.ts";
export { type Permit, Semaphore, type SemaphoreOptions } from "./semaphore.ts";
