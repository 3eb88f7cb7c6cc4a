import { Buffer } from "node:buffer";
import { setTimeout as sleep } from "node:timers/promises";
import type { FaultPlan } from "../../testing/faults.ts";

/** What goes back to a client: a response, a broken connection, or nothing for as long as it cares to wait. */
export type Answer = Response | "reset" | "silence";

/** How long a reordered request waits for another one to overtake it, in ms. */
const reorderLimit = 1000;

/**
 * Stands before a handler and makes requests go wrong as planned. `plan` is asked once per request, with the
 * command's name; a pipeline or transaction goes by the name of its first command. `signal` in a call ends all
 * waiting, as the crash of a server does: what has not been run by then never is.
 */
export function withFaults(
  handle: (request: Request) => Promise<Response>,
  plan: (command: string) => FaultPlan,
): (request: Request, signal: AbortSignal) => Promise<Answer> {
  let overtaken: (() => void)[] = [];

  async function execute(request: () => Request, times: number): Promise<Response> {
    const held = overtaken;
    overtaken = [];
    try {
      let response = await handle(request());
      for (let time = 1; time < times; time++) response = await handle(request());
      return response;
    } finally {
      for (const release of held) release();
    }
  }

  /** Resolves when the next request has been run, after a second at the latest. */
  async function beOvertaken(signal: AbortSignal): Promise<void> {
    const timer = new AbortController();
    const next = new Promise<void>((resolve) => overtaken.push(resolve));
    const limit = wait(reorderLimit, AbortSignal.any([signal, timer.signal]));
    await Promise.race([next, limit]);
    timer.abort();
  }

  return async function answer(request, signal) {
    const body = Buffer.from(await request.arrayBuffer());
    const again = () => copyOf(request, body);
    const faults = plan(commandName(new URL(request.url).pathname, body));
    const lost = faults.reset ? "reset" : "silence";
    if (faults.down) return "reset";
    if (faults.dropRequest) return lost;
    await wait(faults.delay, signal);
    if (faults.status !== undefined) return failure(faults.status, faults.html);
    if (faults.reorder) await beOvertaken(signal);
    if (signal.aborted) return "reset";
    const response = await execute(again, faults.duplicate ? 2 : 1);
    if (faults.dropReply) return lost;
    await wait(faults.delayReply, signal);
    return signal.aborted ? "reset" : response;
  };
}

/** The name of the command that a request carries, in capitals; empty when it carries none. */
export function commandName(path: string, body: Buffer): string {
  const [, first = ""] = path.split("/");
  if (first !== "" && first !== "pipeline" && first !== "multi-exec") return first.toUpperCase();
  try {
    let value: unknown = JSON.parse(body.toString());
    while (Array.isArray(value)) value = value[0];
    return typeof value === "string" ? value.toUpperCase() : "";
  } catch {
    // Not JSON: the handler will say so, a fault without a command still applies.
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
  // Being aborted ends the wait like its time does; the caller looks at the signal.
  await Promise.allSettled([sleep(ms, undefined, { signal })]);
}

const reasons: Record<number, string> = {
  429: "ERR max requests limit exceeded",
  502: "ERR bad gateway",
  503: "ERR service unavailable",
};

function failure(status: number, html: boolean): Response {
  // The one status that may be asked for and has no body.
  if (status === 304) return new Response(null, { status });
  if (!html) return Response.json({ error: reasons[status] ?? "ERR injected fault" }, { status });
  const page = `<!DOCTYPE html>\n<html><head><title>${status}</title></head><body><h1>${status}</h1></body></html>\n`;
  return new Response(page, { status, headers: { "content-type": "text/html; charset=utf-8" } });
}
