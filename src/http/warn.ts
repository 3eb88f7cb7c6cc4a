import { isRedlockError } from "../errors/errors.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { warnOnceAMinute } from "../runtime/warn.ts";
import type { HttpEvent } from "./options.ts";

/** Writes events that an operator should know on the console. Clients' mistakes are left out. */
export function warn(runtime: Runtime, event: HttpEvent, isWebhook: boolean): void {
  const what = describe(event, isWebhook);
  if (!what) return;
  const { error } = event as { readonly error?: unknown };
  const kind = `${what} ${Object(error).reason ?? ""}`;
  const why = error === undefined ? "" : `: ${messageOf(error)}`;
  // Not in the kind, because clients choose it.
  const key = event.type === "unstored" ? ` for the key ${JSON.stringify(event.key)}` : "";
  warnOnceAMinute(runtime, kind, `${what}${key}${why}`);
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
