import { EndpointError, type EndpointErrorKind } from "./errors.ts";

/** A Redis command: its name and arguments. */
export type Command = readonly (string | number)[];

/**
 * Which commands an endpoint understands. `upstash`: compare-and-set and compare-and-delete as native commands
 * (Upstash; also Redis 8.4 and Dragonfly 1.37), one billed command each. `redis`: any Redis from 6.2, which
 * does the same in a script.
 */
export type Dialect = "upstash" | "redis";

/** One independent Redis, reached by whatever means. */
export interface Endpoint {
  /** Names the endpoint in votes, errors and events; must contain no secret. */
  readonly name: string;
  readonly dialect: Dialect;
  /**
   * Whether a reply is exactly what the server said to this one attempt. Where a client in between may retry
   * or invent replies, leave it out: the library then uses only scripts whose success is an unguessable echo.
   */
  readonly verbatim?: boolean;
  /**
   * Sends one command, once, and resolves with Redis's reply. Rejects when there is none or it is an error;
   * must end soon after `signal` aborts.
   */
  send(command: Command, signal: AbortSignal): Promise<unknown>;
}

/** Where an endpoint is, and how to get in. */
export interface HttpEndpointOptions {
  /** Base URL of the REST server, `https://…` or `http://…`, without credentials. */
  readonly url: string;
  /** The REST token. Never logged, and never sent to another address. */
  readonly token: string;
  /** Default: the URL's host. */
  readonly name?: string | undefined;
  /** Default: `upstash` when the host ends in `.upstash.io`, else `redis`. */
  readonly dialect?: Dialect | undefined;
}

// Far beyond any record that the library stores, far below what would hurt a Worker with 128 MB.
const maxReplyBytes = 4 * 1024 * 1024;

/**
 * An endpoint that speaks Upstash's REST protocol through the global `fetch`: one POST, one attempt.
 *
 * @throws TypeError when `url` or `token` cannot be used
 * @example
 * httpEndpoint({ url: env.UPSTASH_REDIS_REST_URL, token: env.UPSTASH_REDIS_REST_TOKEN })
 */
export function httpEndpoint(options: HttpEndpointOptions): Endpoint {
  const { url, token } = options;
  const { href, host } = checkUrl(url);
  // A line break in a pasted token would make fetch print the whole header in its error.
  if (typeof token !== "string" || !/^[\x21-\x7e]+$/.test(token)) {
    throw new TypeError(`the token of endpoint ${host} must be a string of printable ASCII without spaces`);
  }
  const name = options.name ?? host;
  const dialect = checkDialect(options.dialect) ?? dialectOf(host);
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };

  async function send(command: Command, signal: AbortSignal): Promise<unknown> {
    const fail = (kind: EndpointErrorKind, message: string, status?: number, cause?: unknown) =>
      new EndpointError(name, kind, `${name}: ${message}`, {
        ...(status !== undefined && { status }),
        ...(cause !== undefined && { cause }),
      });

    let response: Response;
    let text: string | undefined;
    try {
      // redirect: a token must never follow a redirect. No `cache`, no `keepalive`: Workers refuse them.
      response = await fetch(href, {
        method: "POST",
        headers,
        body: JSON.stringify(command),
        redirect: "manual",
        signal,
      });
      text = await readText(response);
    } catch (cause) {
      if (signal.aborted) throw fail("timeout", "no answer in time");
      throw fail("network", `the request failed (${networkReason(cause)})`, undefined, cause);
    }

    const { status } = response;
    if (text === undefined) throw fail("malformed", `the reply exceeds ${maxReplyBytes} bytes`, status);
    const reply = parseReply(text);
    const complaint =
      reply?.error === undefined ? "" : `: ${withoutSecrets(reply.error, [token, ...command])}`;
    // Redis's own errors come as 400; every other status is the gateway's.
    if (status !== 200 && status !== 400) throw fail("http", `HTTP ${status}${complaint}`, status);
    if (reply?.error !== undefined) throw fail("redis", `Redis refused${complaint}`, status);
    if (status !== 200 || !reply || !Object.hasOwn(reply, "result")) {
      throw fail("malformed", `HTTP ${status} without a result`, status);
    }
    return reply.result;
  }

  return { name, dialect, verbatim: true, send };
}

/** The dialect that the server behind `host` is known to speak. */
export function dialectOf(host: string): Dialect {
  return /\.upstash\.io(:\d+)?$/.test(host) ? "upstash" : "redis";
}

/** Passes a valid dialect, or none, through. */
export function checkDialect(dialect: Dialect | undefined): Dialect | undefined {
  if (dialect === undefined || dialect === "upstash" || dialect === "redis") return dialect;
  throw new TypeError(`dialect must be "upstash" or "redis", got ${String(dialect)}`);
}

/**
 * A server's error text, fit for a message: cut where Redis or Upstash begin to quote the command, without
 * any of `secrets`, and short.
 */
export function withoutSecrets(text: string, secrets: Command): string {
  let clean = text.split(/,? (?:with args beginning|command was)/)[0] ?? "";
  for (const secret of secrets) {
    if (typeof secret === "string" && secret.length >= 8) clean = clean.replaceAll(secret, "…");
  }
  return clean.slice(0, 200);
}

function checkUrl(url: string): URL {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    // The text itself is not repeated: what is not a URL may well be a token in the wrong place.
    throw new TypeError("the url of an endpoint must be an absolute https:// or http:// URL");
  }
  if (parsed.protocol !== "https:" && parsed.protocol !== "http:") {
    throw new TypeError(
      `the url of endpoint ${parsed.host} must be https:// or http://, got ${parsed.protocol}`,
    );
  }
  if (parsed.username || parsed.password) {
    throw new TypeError(
      `the url of endpoint ${parsed.host} must not contain credentials; pass the token apart`,
    );
  }
  return parsed;
}

function parseReply(text: string): { error?: string; result?: unknown } | undefined {
  try {
    const reply: unknown = JSON.parse(text);
    if (typeof reply !== "object" || reply === null || Array.isArray(reply)) return undefined;
    // An error that is not a text (a proxy's object, say) is an error still.
    return Object.hasOwn(reply, "error") ? { error: String((reply as { error: unknown }).error) } : reply;
  } catch {
    return undefined;
  }
}

/** Reads the body whole, or answers `undefined` when it is too large. Always consumes or cancels it. */
async function readText(response: Response): Promise<string | undefined> {
  const { body, headers } = response;
  const length = headers.get("content-length");
  // A declared length can be trusted only where nothing is unpacked on the way.
  if (length !== null && Number(length) <= maxReplyBytes && !headers.has("content-encoding")) {
    return response.text();
  }
  if (!body) return "";
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (let bytes = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.byteLength;
    if (bytes > maxReplyBytes) {
      await reader.cancel();
      return undefined;
    }
    text += decoder.decode(value, { stream: true });
  }
}

/** What went wrong below fetch: Node hides the code (ECONNREFUSED) in the cause. */
function networkReason(error: unknown): string {
  const { message, cause } = error as { message?: string; cause?: { code?: string } };
  return cause?.code ?? message ?? "no reason given";
}
