import { Buffer } from "node:buffer";
import { setTimeout as sleep } from "node:timers/promises";
import type { Faults } from "../../faults/faults.ts";
import { withStreamFaults } from "../../faults/stream-faults.ts";
import type { OnCommand } from "./command-runner.ts";
import type { Handle } from "./handler.ts";

/** The answer to a request: a response, a broken connection (`"reset"`), or none at all (`"silence"`). */
export type Answer = Response | "reset" | "silence";

/** How long a reordered request waits at most for the next one to overtake it, in ms. */
const reorderLimit = 1000;

/**
 * Wraps a handler so that requests and streams of events fail as planned. `faults.plan` is called once per request with
 * the name of its command; a pipeline or transaction has the name of its first command. Aborting the `signal` of a call
 * ends its delays, as the crash of a server does: a request that has not been executed by then never is, and its
 * connection is reset.
 *
 * @example
 * const answer = withFaults(handle, faults);
 * const reply = await answer(request, closing.signal); // a Response, "reset" or "silence"
 */
export function withFaults(
  handle: Handle,
  faults: Pick<Faults, "plan" | "planStream" | "planMessage">,
): (request: Request, signal: AbortSignal, onCommand?: OnCommand) => Promise<Answer> {
  /** Resume the requests that wait for the next one to overtake them. */
  let overtaken: (() => void)[] = [];

  async function execute(request: () => Promise<Response>, isTwice: boolean): Promise<Response> {
    const waiting = overtaken;
    overtaken = [];
    try {
      if (isTwice) await discard(await request());
      return await request();
    } finally {
      for (const resume of waiting) resume();
    }
  }

  /** Resolves when the next request has been executed, or after {@link reorderLimit}. */
  async function waitForNext(signal: AbortSignal): Promise<void> {
    const timer = new AbortController();
    const next = new Promise<void>((resolve) => overtaken.push(resolve));
    const limit = wait(reorderLimit, AbortSignal.any([signal, timer.signal]));
    await Promise.race([next, limit]);
    timer.abort();
  }

  return async function answer(request, signal, onCommand) {
    const body = Buffer.from(await request.arrayBuffer());
    const again = () => handle(copyOf(request, body), onCommand);
    const command = commandName(new URL(request.url).pathname, body);
    const plan = faults.plan(command);
    const lost = plan.reset ? "reset" : "silence";
    if (plan.down) return "reset";
    if (plan.dropRequest) return lost;
    await wait(plan.delay, signal);
    if (plan.status !== undefined) return failure(plan.status, plan.html);
    if (plan.reorder) await waitForNext(signal);
    if (signal.aborted) return "reset";
    const response = await execute(again, plan.duplicate);
    if (!plan.dropReply) await wait(plan.delayReply, signal);
    if (plan.dropReply || signal.aborted) {
      await discard(response);
      return plan.dropReply ? lost : "reset";
    }
    if (!response.body || !isStream(response)) return response;
    return new Response(withStreamFaults(response.body, { faults, command, timer }), response);
  };
}

function timer(ms: number, callback: () => void): () => void {
  const id = setTimeout(callback, ms);
  return () => clearTimeout(id);
}

/** Whether a response is a stream of events, which goes on until the client ends it. */
export function isStream({ headers }: Response): boolean {
  return headers.get("content-type") === "text/event-stream";
}

/** Ends the stream of a response that nobody gets. */
async function discard(response: Response): Promise<void> {
  if (isStream(response)) await response.body?.cancel();
}

/** The name of the command in a request, in upper case; empty if it has none. */
export function commandName(path: string, body: Buffer): string {
  const [, first = ""] = path.split("/");
  if (first !== "" && first !== "pipeline" && first !== "multi-exec") return first.toUpperCase();
  try {
    let value: unknown = JSON.parse(body.toString());
    while (Array.isArray(value)) value = value[0];
    return typeof value === "string" ? value.toUpperCase() : "";
  } catch {
    // Not JSON. The handler answers with an error; faults without a command still apply.
    return "";
  }
}

function copyOf(request: Request, body: Buffer): Request {
  const { method, headers, url } = request;
  const hasBody = body.length > 0 && method !== "GET" && method !== "HEAD";
  return new Request(url, { method, headers, ...(hasBody && { body: new Uint8Array(body) }) });
}

async function wait(ms: number, signal: AbortSignal): Promise<void> {
  if (ms <= 0 || signal.aborted) return;
  // An abort ends the wait without an error; the caller checks the signal.
  await Promise.allSettled([sleep(ms, undefined, { signal })]);
}

const reasons: Record<number, string> = {
  429: "ERR max requests limit exceeded",
  502: "ERR bad gateway",
  503: "ERR service unavailable",
};

function failure(status: number, html: boolean): Response {
  // A 304 must not have a body.
  if (status === 304) return new Response(null, { status });
  if (!html) return Response.json({ error: reasons[status] ?? "ERR injected fault" }, { status });
  const page = `<!DOCTYPE html>\n<html><head><title>${status}</title></head><body><h1>${status}</h1></body></html>\n`;
  return new Response(page, { status, headers: { "content-type": "text/html; charset=utf-8" } });
}
