import type { Faults } from "../../faults/faults.ts";
import type { Line } from "../../faults/line.ts";
import { withStreamFaults } from "../../faults/stream-faults.ts";
import { systemRuntime } from "../../runtime.ts";
import type { OnCommand } from "./command-runner.ts";
import type { Handle } from "./handler.ts";
import { commandsIn } from "./request.ts";

/** The answer to a request: a response, a broken connection (`"reset"`), or none at all (`"silence"`). */
export type Answer = Response | "reset" | "silence";

/**
 * Wraps a handler so that requests and streams of events fail as planned. A request has the name of its command, a pipeline
 * or transaction that of its first one.
 *
 * @example
 * const answer = withFaults(handle, faults, new Line(faults, systemRuntime.timer));
 * const reply = await answer(request); // a Response, "reset" or "silence"
 */
export function withFaults(
  handle: Handle,
  faults: Faults,
  line: Line,
): (request: Request, onCommand?: OnCommand) => Promise<Answer> {
  return async function answer(request, onCommand) {
    const [[command = ""] = []] = await commandsIn(request);
    const execute = () => handle(request.clone(), onCommand);
    const carried = await line.carry(command, { execute, discard });
    if (carried === "silence") return carried;
    if (typeof carried === "string") return "reset";
    if ("status" in carried) return failure(carried.status, carried.html);
    const response = carried.answer;
    if (!response.body || !isStream(response)) return response;
    const { timer } = systemRuntime;
    return new Response(withStreamFaults(response.body, { faults, command, timer }), response);
  };
}

/** Whether a response is a stream of events, which goes on until the client ends it. */
function isStream({ headers }: Response): boolean {
  return headers.get("content-type") === "text/event-stream";
}

/** Ends the stream of a response that nobody gets. */
function discard(response: Response): void {
  if (isStream(response)) void response.body?.cancel();
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
