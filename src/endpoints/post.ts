import { EndpointError, type EndpointErrorKind } from "../errors/errors.ts";
import type { Outcome, Post } from "./batch.ts";
import { type Command, type Endpoint, timeoutError, withoutSecrets } from "./endpoint.ts";

// One request of the REST API: a command, or several to `/pipeline`.
// https://upstash.com/docs/redis/features/restapi#pipelining

// Larger than any record, and small enough for a Worker.
const maxReplyBytes = 4 * 1024 * 1024;

/** Times the bytes of one reply. */
const maxPipelineReplies = 8;

interface HttpAnswer {
  readonly status: number;
  readonly text: string;
  /** In ms. */
  readonly retryAfter: number | undefined;
}

/** Never rejects. */
export function postTo(name: string, href: string, token: string): Post {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const pipeline = `${href.replace(/\/$/, "")}/pipeline`;

  async function post(url: string, body: string, signal: AbortSignal, maxBytes: number): Promise<HttpAnswer> {
    try {
      const response = await fetch(url, postOptions(headers, signal, body));
      const { status, headers: said } = response;
      return { status, text: await readText(response, maxBytes), retryAfter: retryAfterIn(status, said) };
    } catch (cause) {
      if (signal.aborted) throw timeoutError(name, signal);
      const kind = cause instanceof RangeError ? "malformed" : "network";
      // Node keeps the bytes that it could not parse, secrets included.
      const quotesReply = (cause as { cause?: { data?: unknown } }).cause?.data !== undefined;
      throw new EndpointError(name, kind, networkReason(cause), quotesReply ? {} : { cause });
    }
  }

  function outcomeOf(reply: unknown, { status, retryAfter }: HttpAnswer, secrets: Command): Outcome {
    const answer = Object(reply) as { error?: unknown; result?: unknown };
    const { error } = answer;
    if (status === 200 && "result" in answer && error === undefined) return { reply: answer.result };
    // Every other status is the gateway's.
    const said = typeof error === "string" ? withoutSecrets(error, [token, ...secrets]) : "";
    const kind: EndpointErrorKind = status !== 200 && status !== 400 ? "http" : said ? "redis" : "malformed";
    const reason = `HTTP ${status}, ${answerReason(said, status)}`;
    return { error: new EndpointError(name, kind, reason, { status, retryAfter }) };
  }

  return async (batch, signal) => {
    const [single] = batch.length === 1 ? batch : [];
    try {
      const answer = single
        ? await post(href, single.text, signal, maxReplyBytes)
        : await post(
            pipeline,
            `[${batch.map((one) => one.text).join()}]`,
            signal,
            maxReplyBytes * maxPipelineReplies,
          );
      const { status } = answer;
      const reply = parse(answer.text);
      if (single) return [outcomeOf(reply, answer, single.command)];
      if (isUnknownPath(status, reply)) return batch.map(() => noPipelines(name, answer));
      if (status === 200 && Array.isArray(reply) && reply.length === batch.length) {
        return batch.map(({ command }, index) => outcomeOf(reply[index], answer, command));
      }
      // If the number of replies is wrong, nobody knows which belongs to which command.
      const secrets = batch.flatMap(({ command }) => command);
      const failed = outcomeOf({ error: Object(reply).error }, answer, secrets);
      return batch.map(() => failed);
    } catch (error) {
      return batch.map(() => ({ error: error as EndpointError }));
    }
  };
}

function noPipelines(name: string, { status }: HttpAnswer): Outcome {
  const reason = `HTTP ${status}, the server has no /pipeline: is the URL right? If it is, set pipelines: false`;
  return { error: new EndpointError(name, "http", reason, { status }) };
}

/** Without `/pipeline`, nothing was executed. Any other failure may pass. */
function isUnknownPath(status: number, reply: unknown): boolean {
  // Some take the path for a command.
  const said = String((Object(reply) as { error?: unknown }).error);
  return (
    [404, 405, 501].includes(status) || (status === 400 && /unknown command\W{1,3}pipeline\b/i.test(said))
  );
}

/** A date is ignored, because clocks differ. */
function retryAfterIn(status: number, headers: Headers): number | undefined {
  if (status !== 429 && status !== 503) return undefined;
  const ms = 1_000 * Number(headers.get("retry-after"));
  return ms > 0 ? ms : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function readText(response: Response, maxBytes: number): Promise<string> {
  const { body, headers } = response;
  const length = headers.get("content-length");
  // Faster, and the length of an uncompressed body is true.
  if (length && Number(length) <= maxBytes && !headers.has("content-encoding")) return response.text();
  const reader = body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  // The length may be missing or wrong.
  for (let piece = await reader?.read(); piece?.value; piece = await reader?.read()) {
    size += piece.value.length;
    if (size > maxBytes) {
      await reader?.cancel();
      throw new RangeError(`the reply exceeds ${maxBytes} bytes`);
    }
    text += decoder.decode(piece.value, { stream: true });
  }
  return text + decoder.decode();
}

export function subscriber(name: string, url: string, token: string): NonNullable<Endpoint["subscribe"]> {
  const headers = { authorization: `Bearer ${token}`, accept: "text/event-stream" };
  return async (channel, signal) => {
    const href = `${url.replace(/\/$/, "")}/subscribe/${encodeURIComponent(channel)}`;
    const { status, body } = await fetch(href, postOptions(headers, signal, null));
    if (status === 200 && body) return body;
    // Workers count an unread body as an open connection.
    await body?.cancel();
    throw new EndpointError(name, "http", `HTTP ${status}, no stream`, { status });
  };
}

/**
 * Makes sure that a POST reaches the server, and no other:
 *
 * - `redirect`: a token must never follow a redirect.
 * - `next`: Next.js may answer a repeated request from its cache, so an extension that no server has seen would be
 *   granted. `internal` passes every cache, but `revalidate: 0` and `cache: "no-store"` do not.
 *
 * No `cache` and no `keepalive`, which Workers refuse.
 */
function postOptions(headers: HeadersInit, signal: AbortSignal, body: string | null): RequestInit {
  const next = { internal: true };
  // Node 20 takes 100 times as long to spread a constant.
  const options = { method: "POST", headers, body, signal, redirect: "manual", next } as const;
  return options;
}

export function networkReason(error: unknown): string {
  const { message, cause } = error as { message?: string; cause?: { code?: string; name?: string } };
  // The parser's errors of undici 7 have no code.
  const isParser = cause?.name === "HTTPParserError";
  const reason = `${cause?.code ?? (isParser ? cause.name : message)}`;
  const hint = /REFUSED/.test(reason)
    ? ": nothing listens"
    : /NOTFOUND|EAI_/.test(reason)
      ? ": no such host"
      : /WRONG_VERSION/.test(reason)
        ? ": no TLS there"
        : /SOCKET|HPE_|Parser|RESET/.test(reason)
          ? ": broken off, or no HTTP (is it a Redis port?)"
          : "";
  return `the request failed (${reason})${hint}`;
}

/** `said`: the error in an answer without a reply of Redis. */
export function answerReason(said: string, status = 200): string {
  // A REST API is never "not found", whatever the answer says.
  if (said && status !== 404) return said;
  // Any other status is a gateway's, before a REST API.
  return status < 405 ? "no answer of Upstash's REST API: is the URL right?" : "no usable reply";
}
