import { type Environment, StoppedError } from "./environment.ts";
import { printable } from "./text.ts";

/** Work that takes longer than this many ms says what it waits for, and goes on doing so as often. */
const interval = 1_000;

/**
 * Waits for work. At a terminal it shows what the work waits for, once that takes longer than a second.
 *
 * @throws StoppedError as soon as the command is stopped
 */
export async function withProgress<Value>(
  { progress, stop }: Pick<Environment, "progress" | "stop">,
  text: () => string,
  work: Promise<Value>,
): Promise<Value> {
  const began = performance.now();
  let isShown = false;
  const timer = setInterval(() => {
    progress?.(`${printable(text())} (${Math.round((performance.now() - began) / 1_000)} s)`);
    isShown = true;
  }, interval);
  const ended = new AbortController();
  try {
    return await new Promise<Value>((resolve, reject) => {
      const end = () => reject(new StoppedError());
      if (stop.aborted) end();
      stop.addEventListener("abort", end, { signal: ended.signal });
      work.then(resolve, reject);
    });
  } finally {
    clearInterval(timer);
    ended.abort();
    if (isShown) progress?.(undefined);
  }
}
