import { isRedlockError } from "../errors/errors.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { HttpEvent } from "./options.ts";

const silence = 60_000;

const mostKinds = 32;

interface LastLine {
  readonly at: number;
  more: number;
}

/** No kind contains a text that a request or tenant chooses, so there are few. */
const lastLines = new WeakMap<Runtime, Map<string, LastLine>>();

/** Writes events that an operator should know, at most one line per kind and minute. Clients' mistakes are left out. */
export function warn(runtime: Runtime, event: HttpEvent, isWebhook: boolean): void {
  const what = describe(event, isWebhook);
  if (!what) return;
  const { error } = event as { readonly error?: unknown };
  const kind = `${what} ${Object(error).reason ?? ""}`;
  const lines = lastLines.get(runtime) ?? new Map<string, LastLine>();
  lastLines.set(runtime, lines);
  const last = lines.get(kind);
  const now = runtime.now();
  // The clock may be set back.
  if (last && Math.abs(now - last.at) < silence) {
    last.more += 1;
    return;
  }
  // A foreign provider may give each error its own reason.
  if (lines.size >= mostKinds) lines.clear();
  lines.set(kind, { at: now, more: 0 });
  const why = error === undefined ? "" : `: ${messageOf(error)}`;
  const more = last?.more ? ` (and ${last.more} more since the last such line)` : "";
  // Not in the kind, because clients choose it.
  const key = event.type === "unstored" ? ` for the key ${JSON.stringify(event.key)}` : "";
  console.warn(`redlock-edge: ${what}${key}${why}${more}`);
}

function describe(event: HttpEvent, isWebhook: boolean): string | undefined {
  if (event.type === "unguarded") return "ran without protection";
  if (event.type === "unstored") return `a response is not stored (${event.reason})`;
  if (event.type !== "refused") return undefined;
  const { status, code } = event;
  const isTold =
    /^(WEBHOOK_INVALID|NO_QUORUM|LEASE_LOST|DEAD_KEY|RECORD_CORRUPT)$/.test(code) ||
    // A webhook's sender would not notice by itself.
    (isWebhook && /^(BODY_TOO_LARGE|(FINGERPRINT|HANDLER)_MISMATCH)$/.test(code));
  const hint = code === "HANDLER_MISMATCH" ? " (set the option handler of each route)" : "";
  return isTold ? `answered ${status} ${code}${hint}` : undefined;
}

/** Only this package's errors are known to contain no secret. */
function messageOf(error: unknown): string {
  if (!isRedlockError(error)) return String(Object(error).name);
  return error.message.replace(/\p{Cc}+/gu, " ").slice(0, 800);
}
