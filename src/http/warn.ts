import { isRedlockError } from "../errors/errors.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { HttpEvent } from "./options.ts";

/** After a line, others of its kind are counted instead of written for so long, in ms. */
const silence = 60_000;

/** More than there are. */
const mostKinds = 32;

/** When the last line of a kind was written, and how many there were since. */
interface LastLine {
  readonly at: number;
  more: number;
}

/** By clock and kind. There are few kinds: none contains a text that a request or a tenant can choose. */
const lastLines = new WeakMap<Runtime, Map<string, LastLine>>();

/**
 * Writes what an operator should know to the console, where no hook receives it: at most one line per kind and minute.
 * Mistakes of a client and normal events are not written.
 */
export function warn(runtime: Runtime, event: HttpEvent, isWebhook: boolean): void {
  const what = describe(event, isWebhook);
  if (!what) return;
  const { error } = event as { readonly error?: unknown };
  const kind = `${what} ${Object(error).reason ?? ""}`;
  const lines = lastLines.get(runtime) ?? new Map<string, LastLine>();
  lastLines.set(runtime, lines);
  const last = lines.get(kind);
  const now = runtime.now();
  // In either direction: the clock may be set back.
  if (last && Math.abs(now - last.at) < silence) {
    last.more += 1;
    return;
  }
  // A provider of somebody else's making may give each error a reason of its own.
  if (lines.size >= mostKinds) lines.clear();
  lines.set(kind, { at: now, more: 0 });
  const why = error === undefined ? "" : `: ${messageOf(error)}`;
  const more = last?.more ? ` (and ${last.more} more since the last such line)` : "";
  // Not a part of the kind: a client chooses it.
  const key = event.type === "unstored" ? ` for the key ${JSON.stringify(event.key)}` : "";
  console.warn(`redlock-edge: ${what}${key}${why}${more}`);
}

/** The line to write, or undefined if there is none. */
function describe(event: HttpEvent, isWebhook: boolean): string | undefined {
  if (event.type === "unguarded") return "ran without protection";
  if (event.type === "unstored") return `a response is not stored (${event.reason})`;
  if (event.type !== "refused") return undefined;
  const { status, code } = event;
  const isTold =
    /^(WEBHOOK_INVALID|NO_QUORUM|LEASE_LOST|DEAD_KEY|RECORD_CORRUPT)$/.test(code) ||
    // The sender of a webhook would not notice by itself.
    (isWebhook && /^(BODY_TOO_LARGE|(FINGERPRINT|HANDLER)_MISMATCH)$/.test(code));
  const hint = code === "HANDLER_MISMATCH" ? " (set the option handler of each route)" : "";
  return isTold ? `answered ${status} ${code}${hint}` : undefined;
}

/** The message in one line. Only errors of this package are known to contain no secret. */
function messageOf(error: unknown): string {
  if (!isRedlockError(error)) return String(Object(error).name);
  return error.message.replace(/\p{Cc}+/gu, " ").slice(0, 800);
}
