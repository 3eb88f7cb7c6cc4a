import { Buffer } from "node:buffer";
import { ReplyError } from "../../../../lock-server/src/engine/reply-error.ts";
import { type Backend, BackendGoneError, type Outcome } from "../backend.ts";
import type { CommandLog } from "../command-log.ts";
import { accessOf, type Tokens } from "./authorize.ts";
import { type Caller, CommandRunner, type OnCommand } from "./command-runner.ts";
import { decodeCommands, RequestError } from "./request.ts";
import { envelope, formatOf } from "./response.ts";

/** Options of {@link upstashHandler}. */
export interface UpstashHandlerOptions extends Tokens {
  /** Runs the commands. */
  readonly backend: Backend;
  /** Records the commands and their cost. */
  readonly log: CommandLog;
}

/** Answers a request of Upstash's REST protocol. */
export type Handle = (request: Request, onCommand?: OnCommand) => Promise<Response>;

/** Largest request body in bytes. */
const maxBody = 10 * 1024 * 1024;

const methods = ["HEAD", "GET", "POST", "PUT"];

/**
 * Upstash's REST protocol as a function from `Request` to `Response`, in front of any backend. It does not listen on a
 * port; `start` does.
 *
 * Errors are JSON, `{"error": "ERR …"}`: 400 for a malformed request or a failing command, 401 without a valid token,
 * 405 for other methods, 413 for a body above 10 MiB, and 500 when the backend cannot be reached.
 *
 * With `Accept: text/event-stream`, `/subscribe/<channel>` and `/psubscribe/<pattern>` answer with a stream of server-sent
 * events. To cancel the response's body ends the subscription.
 */
export function upstashHandler(options: UpstashHandlerOptions): Handle {
  const runner = new CommandRunner(options.backend, options.log);
  return async function handle(request, onCommand) {
    try {
      return await answer(request, options, runner, onCommand);
    } catch (error) {
      return failure(error as Error);
    }
  };
}

async function answer(
  request: Request,
  options: UpstashHandlerOptions,
  runner: CommandRunner,
  onCommand: OnCommand | undefined,
): Promise<Response> {
  if (!methods.includes(request.method)) {
    throw new RequestError(405, `ERR Method not allowed: '${request.method}'`);
  }
  const access = accessOf(request, options);
  if (access === undefined) throw new RequestError(401, "WRONGPASS invalid or missing auth token");
  const body = await readBody(request);
  const format = formatOf(request.headers);
  const caller = { readOnly: access === "read-only", onCommand };
  const url = new URL(request.url);
  if (asksForStream(request, url)) return openStream(url, runner, caller);
  const [first, ...others] = decodeCommands(url, body);
  const envelopes = (outcomes: readonly Outcome[]) =>
    Response.json(outcomes.map(({ reply }) => envelope(reply, format)));
  if (url.pathname === "/pipeline") {
    // Sent one after another without waiting for replies: a backend executes them in that order.
    return envelopes(await Promise.all([first, ...others].map((command) => runner.run(command, caller))));
  }
  if (url.pathname === "/multi-exec") {
    const outcomes = await runner.transaction([first, ...others], caller);
    if (outcomes instanceof ReplyError) throw new RequestError(400, outcomes.message);
    return envelopes(outcomes);
  }
  const { reply } = await runner.run(first, caller);
  return Response.json(envelope(reply, format), { status: reply instanceof ReplyError ? 400 : 200 });
}

async function readBody(request: Request): Promise<Buffer> {
  const body = Buffer.from(await request.arrayBuffer());
  if (body.length <= maxBody) return body;
  const sizes = `Limit: ${maxBody} bytes, Actual: ${body.length} bytes`;
  throw new RequestError(413, `ERR max request size exceeded. ${sizes}`);
}

/** Whether a request asks for a stream of events: SUBSCRIBE or PSUBSCRIBE in its path, by GET or POST, and this `Accept`. */
function asksForStream({ method, headers }: Request, { pathname }: URL): boolean {
  return (
    /^\/p?subscribe(?:\/|$)/i.test(pathname) &&
    (method === "GET" || method === "POST") &&
    /\btext\/event-stream\b/i.test(headers.get("accept") ?? "")
  );
}

async function openStream(url: URL, runner: CommandRunner, caller: Caller): Promise<Response> {
  // Without the body: Upstash's SDK sends an empty list.
  const [command] = decodeCommands(url, Buffer.alloc(0));
  const body = await runner.subscribe(command, caller);
  if (body instanceof ReplyError) throw new RequestError(400, body.message);
  return new Response(body, {
    headers: { "content-type": "text/event-stream", "cache-control": "no-cache" },
  });
}

function failure(error: Error): Response {
  const { message } = error;
  if (error instanceof RequestError) {
    const headers = error.status === 405 ? { allow: methods.join(", ") } : {};
    return Response.json({ error: message }, { status: error.status, headers });
  }
  const isGone = error instanceof BackendGoneError || error instanceof ReplyError;
  const what = isGone ? "the Redis behind this endpoint cannot be reached" : "the local endpoint failed";
  return Response.json({ error: `ERR ${what}: ${message}` }, { status: 500 });
}
