import { Buffer } from "node:buffer";
import { type Context, Hono, type MiddlewareHandler } from "hono";
import { ReplyError } from "../../../../lock-server/src/engine/reply-error.ts";
import { type Backend, BackendGoneError } from "../backend.ts";
import type { CommandLog } from "../command-log.ts";
import { accessOf, type Tokens } from "./authorize.ts";
import { type Caller, CommandRunner, type OnCommand } from "./command-runner.ts";
import { decodeBatch, decodeCommand, decodePath, RequestError } from "./request.ts";
import { envelope, type Format, formatOf } from "./response.ts";

/** Options of {@link upstashHandler}. */
export interface UpstashHandlerOptions extends Tokens {
  /** Runs the commands. */
  readonly backend: Backend;
  /** Records the commands and their cost. */
  readonly log: CommandLog;
  /** Largest request body in bytes. */
  readonly maxBody: number;
}

/** Answers a request of Upstash's REST protocol. */
export type Handle = (request: Request, onCommand?: OnCommand) => Promise<Response>;

type Environment = {
  Bindings: { onCommand?: OnCommand | undefined };
  Variables: { body: Buffer; format: Format; caller: Caller };
};
type HandlerContext = Context<Environment>;

const methods = ["HEAD", "GET", "POST", "PUT"];

/**
 * Upstash's REST protocol as a function from `Request` to `Response`, in front of any backend. It does not listen on a
 * port; `start` does.
 *
 * Errors are JSON, `{"error": "ERR …"}`: 400 for a malformed request or a failing command, 401 without a valid token,
 * 405 for other methods, 413 for a body above `maxBody`, and 500 when the backend cannot be reached.
 *
 * With `Accept: text/event-stream`, `/subscribe/<channel>` and `/psubscribe/<pattern>` answer with a stream of server-sent
 * events. To cancel the response's body ends the subscription.
 */
export function upstashHandler(options: UpstashHandlerOptions): Handle {
  const runner = new CommandRunner(options.backend, options.log);
  const app = new Hono<Environment>();
  app.use(prepare(options));
  app.use(async function answerStreams(context, next) {
    return asksForStream(context.req.raw) ? openStream(context, runner) : next();
  });
  app.all("/pipeline", (context) => runPipeline(context, runner));
  app.all("/multi-exec", (context) => runTransaction(context, runner));
  app.all("*", (context) => runSingle(context, runner));
  app.onError(answerError);
  return async (request, onCommand) => app.fetch(request, { onCommand });
}

/** Checks method, token and size of a request, and reads its body. */
function prepare(options: UpstashHandlerOptions): MiddlewareHandler<Environment> {
  const { maxBody } = options;
  return async function prepareRequest(context, next) {
    const request = context.req.raw;
    if (!methods.includes(request.method)) {
      context.header("Allow", methods.join(", "));
      throw new RequestError(405, `ERR Method not allowed: '${request.method}'`);
    }
    const access = accessOf(request, options);
    if (access === undefined) throw new RequestError(401, "WRONGPASS invalid or missing auth token");
    context.set("body", await readBody(context, maxBody));
    context.set("format", formatOf(request.headers));
    context.set("caller", { readOnly: access === "read-only", onCommand: context.env.onCommand });
    await next();
  };
}

async function readBody({ req }: HandlerContext, maxBody: number): Promise<Buffer> {
  const body = Buffer.from(await req.arrayBuffer());
  if (body.length <= maxBody) return body;
  const size = Math.max(body.length, Number(req.header("content-length") ?? 0));
  throw new RequestError(
    413,
    `ERR max request size exceeded. Limit: ${maxBody} bytes, Actual: ${size} bytes`,
  );
}

async function runPipeline(context: HandlerContext, runner: CommandRunner): Promise<Response> {
  const { body, format, caller } = context.var;
  // Sent one after another without waiting for replies: a backend executes them in that order.
  const outcomes = await Promise.all(decodeBatch(body).map((command) => runner.run(command, caller)));
  return context.json(outcomes.map(({ reply }) => envelope(reply, format)));
}

async function runTransaction(context: HandlerContext, runner: CommandRunner): Promise<Response> {
  const { body, format, caller } = context.var;
  const outcomes = await runner.transaction(decodeBatch(body), caller);
  if (outcomes instanceof ReplyError) throw new RequestError(400, outcomes.message);
  return context.json(outcomes.map(({ reply }) => envelope(reply, format)));
}

/** Whether a request asks for a stream of events: SUBSCRIBE or PSUBSCRIBE in its path, by GET or POST, and this `Accept`. */
function asksForStream({ method, url, headers }: Request): boolean {
  return (
    /^\/p?subscribe(?:\/|$)/i.test(new URL(url).pathname) &&
    (method === "GET" || method === "POST") &&
    /\btext\/event-stream\b/i.test(headers.get("accept") ?? "")
  );
}

async function openStream(context: HandlerContext, runner: CommandRunner): Promise<Response> {
  // Without the body: Upstash's SDK sends an empty list.
  const command = decodePath(new URL(context.req.url), Buffer.alloc(0));
  const body = await runner.subscribe(command, context.var.caller);
  if (body instanceof ReplyError) throw new RequestError(400, body.message);
  return new Response(body, {
    headers: { "content-type": "text/event-stream", "cache-control": "no-cache" },
  });
}

async function runSingle(context: HandlerContext, runner: CommandRunner): Promise<Response> {
  const { body, format, caller } = context.var;
  const url = new URL(context.req.url);
  const command = url.pathname === "/" ? decodeCommand(body) : decodePath(url, body);
  const { reply } = await runner.run(command, caller);
  return context.json(envelope(reply, format), reply instanceof ReplyError ? 400 : 200);
}

function answerError(error: Error, context: Context): Response {
  if (error instanceof RequestError) return context.json({ error: error.message }, error.status);
  if (error instanceof BackendGoneError || error instanceof ReplyError) {
    return context.json(
      { error: `ERR the Redis behind this endpoint cannot be reached: ${error.message}` },
      500,
    );
  }
  return context.json({ error: `ERR the local endpoint failed: ${error.message}` }, 500);
}
