import type { SynchronizerKind } from "../../sync/index.ts";
import { UsageError } from "./command.ts";

// The compiler notices when the library has a kind that is missing here.
const kinds: Readonly<Record<SynchronizerKind, true>> = {
  Semaphore: true,
  ReadWriteLock: true,
  FairLock: true,
  ReentrantLock: true,
  CountDownLatch: true,
  CyclicBarrier: true,
  once: true,
  debounce: true,
};

/** The kinds of synchronizers, as they are imported. */
export const kindNames: readonly string[] = Object.keys(kinds);

/** The kind that a word names: `Semaphore`, `semaphore`, `read-write-lock`. */
export function kindOf(word: string): SynchronizerKind {
  const plain = (text: string) => text.toLowerCase().replaceAll("-", "");
  const found = kindNames.find((kind) => plain(kind) === plain(word));
  if (!found) throw new UsageError(`--kind is one of ${kindNames.join(", ")}, not '${word}'`);
  return found as SynchronizerKind;
}
