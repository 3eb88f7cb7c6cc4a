import { nearest } from "../check.ts";
import type { SynchronizerKind } from "../sync/index.ts";
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

/** The kinds of synchronizers, as words of a command line: `semaphore`, `read-write-lock`. */
export const kindWords: readonly string[] = Object.keys(kinds).map((kind) =>
  kind.replaceAll(/\B[A-Z]/g, (letter) => `-${letter}`).toLowerCase(),
);

/** The kind that a word names: `semaphore`, `read-write-lock`, or as it is imported. */
export function kindOf(word: string): SynchronizerKind {
  const plain = (text: string) => text.toLowerCase().replaceAll("-", "");
  const found = Object.keys(kinds).find((kind) => plain(kind) === plain(word));
  if (found) return found as SynchronizerKind;
  const near = nearest(word, kindWords);
  const hint = near ? `; did you mean ${near}?` : "";
  throw new UsageError(`--kind is one of ${kindWords.join(", ")}, not '${word}'${hint}`);
}
