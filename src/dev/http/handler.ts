import { Buffer } from "node:buffer";
import { performance } from "node:perf_hooks";
import { type Context, Hono } from "hono";
import { ReplyError } from "../../testing/engine.ts";
import { type Argument, textOf } from "../argument.ts";
import { type Backend, BackendGoneError, type Outcome } from "../backend.ts";
import type { CommandLog } from "../command-log.ts";
import { encodeReply, StatusReply, type WireReply } from "../redis/resp.ts";
import { accessOf } from "./authorize.ts";
import { isReading, refusal } from "./command-access.ts";
import { decodeBatch, decodeCommand, decodePath, RequestError } from "./request.ts";

/** What {@link upstashHandler} needs. */
export interface UpstashHandlerOptions {
  /** What runs the commands. */
  readonly backend: Backend;
  /** The token that may do everything. */
  readonly token: string;
  /** The token that may only read. Default: there is none. */
  readonly readOnlyToken?: string;
  /** Where commands and their cost are noted. Default: nowhere. */
  readonly log?: CommandLog;
  /** Largest request body, in bytes. Default 10 485 760, as at Upstash. */
  readonly maxBody?: number;
}

type Format = "json" | "base64" | "resp2";
type Environment = { Variables: { readOnly: boolean; format: Format; body: Buffer; position: number } };
interface Result {
  readonly reply: WireReply;
}

const methods = ["HEAD", "GET", "POST", "PUT"];

/**
 * Upstash's REST protocol as a function of a `Request`, in front of any backend; who listens is somebody
 * else's affair. Errors are JSON, `{"error": "ERR …"}`, with 400 for a failing command, 401, 405, 413 (body
 * too large), 500 (the backend cannot be reached) and 501 (`/subscribe`, `/psubscribe`, `/monitor`).
 *
 * @example
 * const handle = upstashHandler({ backend: new EmbeddedBackend(new Engine()), token: "secret" });
 * const response = await handle(
 *   new Request("http://localhost/set/key/value", { headers: { authorization: "Bearer secret" } }),
 * );
 */
export function upstashHandler(options: UpstashHandlerOptions): (request: Request) => Promise<Response> {
  const { backend, token, readOnlyToken, log, maxBody = 10 * 1024 * 1024 } = options;
  let writes = 0;

  /**
   * Where the commands stand in the order of writes: behind all that were sent before them, whether or not those
   * have been answered. It is asked for when they are sent: their replies come in an order of their own, and a write
   * whose reply is lost may have been executed.
   */
  function positionOf(commands: readonly (readonly Argument[])[]): number {
    writes += commands.filter((command) => !isReading(command)).length;
    return writes;
  }

  function note(
    command: readonly Argument[],
    outcome: Outcome,
    at: number,
    began: number,
    refused = false,
  ): void {
    const error = outcome.reply instanceof ReplyError ? outcome.reply.message : undefined;
    log?.add({
      command: command.map(textOf),
      billed: outcome.billed,
      at,
      ms: performance.now() - began,
      outcome: refused ? "refused" : error === undefined ? "ok" : "error",
      ...(error !== undefined && { error }),
    });
  }

  async function run(command: readonly Argument[], context: Context<Environment>): Promise<Result> {
    const at = Date.now();
    const began = performance.now();
    const refused = refusal(command, context.get("readOnly"));
    if (refused === undefined) context.set("position", positionOf([command]));
    const outcome =
      refused === undefined ? await backend.execute(command) : { reply: new ReplyError(refused), billed: 0 };
    note(command, outcome, at, began, refused !== undefined);
    return outcome;
  }

  const app = new Hono<Environment>();

  app.use(async function prepare(context, next) {
    const { req } = context;
    if (!methods.includes(req.method)) {
      context.header("Allow", methods.join(", "));
      throw new RequestError(405, `ERR Method not allowed: '${req.method}'`);
    }
    const access = accessOf(req.raw, { token, readOnlyToken });
    if (access === undefined) throw new RequestError(401, "WRONGPASS invalid or missing auth token");
    context.set("readOnly", access === "read-only");
    const declared = declaredSize(req.raw.headers);
    const body = declared > maxBody ? undefined : Buffer.from(await req.arrayBuffer());
    const size = body?.length ?? declared;
    if (body === undefined || size > maxBody) {
      throw new RequestError(
        413,
        `ERR max request size exceeded. Limit: ${maxBody} bytes, Actual: ${size} bytes`,
      );
    }
    context.set("body", body);
    context.set("format", formatOf(req.header("upstash-response-format"), req.header("upstash-encoding")));
    context.set("position", writes);
    await next();
    context.header("upstash-sync-token", context.get("position").toString(32));
  });

  for (const stream of ["/subscribe", "/psubscribe", "/monitor"]) {
    app.all(`${stream}/*`, () => {
      throw new RequestError(501, `ERR ${stream} is not supported by the local endpoint`);
    });
  }

  app.all("/pipeline", async function pipeline(context) {
    const results: Result[] = [];
    for (const command of decodeBatch(context.get("body"))) {
      results.push(await run(command, context));
    }
    if (context.get("format") === "resp2") return binary(results);
    return context.json(results.map((result) => envelope(result, context.get("format"))));
  });

  app.all("/multi-exec", async function transaction(context) {
    const commands = decodeBatch(context.get("body"));
    for (const command of commands) {
      const refused = refusal(command, context.get("readOnly"));
      if (refused === undefined) continue;
      note(command, { reply: new ReplyError(refused), billed: 0 }, Date.now(), performance.now(), true);
      throw new RequestError(400, `EXECABORT Transaction discarded because of: ${refused}`);
    }
    const at = Date.now();
    const began = performance.now();
    context.set("position", positionOf(commands));
    const outcomes = await backend.transaction(commands);
    if (outcomes instanceof ReplyError) throw new RequestError(400, outcomes.message);
    for (const [index, outcome] of outcomes.entries()) note(commands[index]!, outcome, at, began);
    // There is no RESP2 form of a transaction.
    const format = context.get("format") === "base64" ? "base64" : "json";
    return context.json(outcomes.map((result) => envelope(result, format)));
  });

  app.all("*", async function single(context) {
    const url = new URL(context.req.url);
    const body = context.get("body");
    const command = url.pathname === "/" ? decodeCommand(body) : decodePath(url, body);
    const result = await run(command, context);
    const status = result.reply instanceof ReplyError ? 400 : 200;
    if (context.get("format") === "resp2") return binary([result], status);
    return context.json(envelope(result, context.get("format")), status);
  });

  app.onError(answerError);

  return async (request) => app.fetch(request);
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

/** The size of the body that a request announces, in bytes; 0 when it does not say. */
export function declaredSize(headers: Headers): number {
  return Number(headers.get("content-length") ?? 0);
}

function formatOf(format: string | undefined, encoding: string | undefined): Format {
  if (format !== undefined && format !== "json" && format !== "resp2") {
    throw new RequestError(400, `ERR Upstash-Response-Format is json or resp2, not '${format}'`);
  }
  if (encoding !== undefined && encoding !== "" && encoding !== "base64") {
    throw new RequestError(400, `ERR Upstash-Encoding is base64, not '${encoding}'`);
  }
  if (encoding !== "base64") return format ?? "json";
  if (format === "resp2") throw new RequestError(400, "ERR Upstash-Encoding base64 does not go with resp2");
  return "base64";
}

function envelope({ reply }: Result, format: Format): { result: unknown } | { error: string } {
  if (reply instanceof ReplyError) return { error: reply.message };
  // The one string that is never encoded, and only as the whole reply: that is what the SDK expects.
  if (reply instanceof StatusReply && reply.text === "OK") return { result: "OK" };
  return { result: jsonReply(reply, format) };
}

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

function jsonReply(reply: WireReply, format: Format): unknown {
  if (reply === null || typeof reply === "number") return reply;
  if (Array.isArray(reply)) return reply.map((item) => jsonReply(item, format));
  if (reply instanceof Uint8Array) {
    return format === "base64" ? Buffer.from(reply).toString("base64") : utf8.decode(reply);
  }
  const text = reply instanceof StatusReply ? reply.text : (reply as ReplyError).message;
  return format === "base64" ? Buffer.from(text).toString("base64") : text;
}

function binary(results: readonly Result[], status = 200): Response {
  const body = Buffer.concat(results.map(({ reply }) => encodeReply(reply)));
  return new Response(new Uint8Array(body), {
    status,
    headers: { "content-type": "application/octet-stream" },
  });
}
