import { type CommandEnvironment, StoppedError } from "./command.ts";
import { printable } from "./text.ts";

/** Work that takes longer than this many ms says what it waits for, and goes on doing so as often. */
const interval = 1_000;

/**
 * Waits for work. At a terminal it shows what the work waits for, once that takes longer than a second.
 *
 * @throws StoppedError as soon as the command is stopped
 */
export async function withProgress<Value>(
  { progress, stop }: Pick<CommandEnvironment, "progress" | "stop">,
  text: () => string,
  work: Promise<Value>,
): Promise<Value> {
  const began = performance.now();
  let isShown = false;
  const show = () => {
    progress?.(`${printable(text())} (${Math.round((performance.now() - began) / 1_000)} s)`);
    isShown = true;
  };
  const timer = setInterval(show, interval);
  const { promise: stopped, forget } = stopping(stop);
  try {
    return await Promise.race([work, stopped]);
  } finally {
    clearInterval(timer);
    forget();
    if (isShown) progress?.(undefined);
  }
}

/** Rejects when the command is stopped; `forget` ends the waiting for that. */
function stopping(stop: AbortSignal): { promise: Promise<never>; forget(): void } {
  const ended = new AbortController();
  const promise = new Promise<never>((_, reject) => {
    const onStop = () => reject(new StoppedError());
    if (stop.aborted) onStop();
    else stop.addEventListener("abort", onStop, { once: true, signal: ended.signal });
  });
  return { promise, forget: () => ended.abort() };
}
