import type { Runtime } from "./runtime.ts";

const minute = 60_000;
const mostKinds = 32;

interface LastLine {
  readonly at: number;
  /** How many were left out since. */
  more: number;
}

const lastLines = new WeakMap<Runtime, Map<string, LastLine>>();

/**
 * Writes a line on the console for an operator, at most one per kind and minute.
 *
 * @param kind must not contain a text that a request or a tenant chooses
 */
export function warnOnceAMinute(runtime: Runtime, kind: string, line: string): void {
  const lines = lastLines.get(runtime) ?? new Map<string, LastLine>();
  lastLines.set(runtime, lines);
  const last = lines.get(kind);
  const now = runtime.now();
  // The clock may be set back.
  if (last && Math.abs(now - last.at) < minute) {
    last.more += 1;
    return;
  }
  // A foreign provider may give each error its own reason.
  if (lines.size >= mostKinds) lines.clear();
  lines.set(kind, { at: now, more: 0 });
  const more = last?.more ? ` (and ${last.more} more since the last such line)` : "";
  console.warn(`redlock-edge: ${line}${more}`);
}
