import type { Codec } from "../idempotency/index.ts";
import { unshared } from "../runtime/bytes.ts";
import { readUpTo } from "./body.ts";

// A response as it is stored: a letter for the form of the body, the status, the headers as JSON, a line feed, the
// body. `t`: text. `b`: base64, if it is not a text. `n`: not stored.
//   t201{"content-type":"application/json","location":"/payments/7"}
//   {"id":7}

/** The part of a response that is stored, to be sent again. */
export interface StoredResponse {
  /** 200 … 599. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined: it was a stream or too large, so only status and headers are stored. */
  readonly body: Uint8Array | undefined;
}

/** Converts responses to text and back. */
export const responseCodec: Codec<StoredResponse> = {
  encode({ status, headers, body }) {
    const head = `${status}${JSON.stringify(headers)}\n`;
    if (!body) return `n${head}`;
    const text = textOf(body);
    return text === undefined ? `b${head}${toBase64(body)}` : `t${head}${text}`;
  },
  decode(text) {
    const match = /^([tbn])([2-5]\d\d)(\{.*\})\n/.exec(text);
    if (!match) throw new TypeError("it is not a response");
    const [head, kind, status, headers] = match;
    const body = text.slice(head.length);
    return {
      status: Number(status),
      headers: JSON.parse(headers!),
      body: kind === "t" ? new TextEncoder().encode(body) : kind === "b" ? fromBase64(body) : undefined,
    };
  },
};

/** The bytes as text, if they are text that JSON writes in about as many bytes. */
function textOf(bytes: Uint8Array): string | undefined {
  try {
    // A byte order mark is part of the body.
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: six bytes each in JSON, where base64 takes 4/3
    return /[\0-\x08\x0b\x0c\x0e-\x1f]/.test(text) ? undefined : text;
  } catch {
    return undefined;
  }
}

function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

function fromBase64(text: string): Uint8Array {
  const binary = atob(text);
  // A loop: for hundreds of kilobytes, `from` with a function takes twenty times as long.
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < bytes.length; index += 1) bytes[index] = binary.charCodeAt(index);
  return bytes;
}

/** Which responses are stored, and how much of them. */
export interface StoragePolicy {
  /** Names of further headers that are not stored, in lower case. */
  readonly omitHeaders: readonly string[];
  readonly maxResponseBody: number;
  readonly store: (response: Response) => boolean;
}

/**
 * Reads the part of a response that is stored, if any, and returns the response to send, with its body unread.
 *
 * @param isComplete whether no runtime adds a type to its headers
 */
export async function captureResponse(
  response: Response,
  policy: StoragePolicy,
  isComplete = false,
): Promise<{ readonly response: Response; readonly stored?: StoredResponse }> {
  // The headers first: Bun adds the type of a form or a Blob when they are read, but not after the body.
  const { status, headers, body: unread } = response;
  // 101 is an upgraded connection, 0 a network error: neither can be constructed again. 206 is a part that the request's
  // Range has named, which is not in the fingerprint.
  if (status < 200 || status > 599 || status === 206 || !policy.store(response)) return { response };
  const read = await readBody(response, policy.maxResponseBody);
  const sent = !unread || read === unread ? response : new Response(read as BodyInit, response);
  const body = ArrayBuffer.isView(read) ? read : undefined;
  if (body && sent !== response && !isComplete && isUntypedText(headers, body)) {
    sent.headers.set("content-type", "text/plain;charset=utf-8");
  }
  return { response: sent, stored: { status, headers: storedHeaders(sent, policy, body), body } };
}

/** Bun adds the type of a string only when it sends the response: bytes in its place would be sent with another type. */
function isUntypedText(headers: Headers, body: Uint8Array): boolean {
  const isUntyped = body.length > 0 && !headers.has("content-type");
  return isUntyped && !new Response("text").headers.has("content-type") && textOf(body) !== undefined;
}

/** The bytes of a response's body, or a stream if they are not stored. */
async function readBody(response: Response, cap: number): Promise<Uint8Array | ReadableStream<Uint8Array>> {
  const { body } = response;
  if (!body) return new Uint8Array();
  return isStream(response, cap) ? body : readUpTo(body, cap);
}

/**
 * Whether a body must be sent before it has been read: because it ends late or never, is too large, or is encoded. The
 * bytes of an encoded body mean nothing without `content-encoding`, which only some platforms undo.
 */
export function isStream({ headers }: Pick<Response, "headers">, cap: number): boolean {
  return (
    /^text\/event-stream\b/i.test(headers.get("content-type") ?? "") ||
    headers.has("transfer-encoding") ||
    !/^(identity)?$/i.test(headers.get("content-encoding") ?? "") ||
    Number(headers.get("content-length")) > cap
  );
}

function storedHeaders(
  { headers }: Response,
  policy: StoragePolicy,
  body: Uint8Array | undefined,
): Record<string, string> {
  const stored: Record<string, string> = {};
  // Headers that the connection header names belong to the connection, too.
  const ofConnection = (headers.get("connection") ?? "").toLowerCase().split(/[\s,]+/);
  const omitted = new Set([...policy.omitHeaders, ...ofConnection, ...(body ? [] : headersOfBody)]);
  for (const [name, value] of headers) {
    if (!unstorableHeaders.test(name) && !omitted.has(name)) stored[name] = value;
  }
  return stored;
}

/** Headers that say something of the body, and nothing without it. */
const headersOfBody = ["content-type", "content-digest", "content-md5", "digest"];

/**
 * Headers of one connection (RFC 9110, 7.6.1), of one message or request (its time, length, trace, rate limit), secrets
 * for one client, and CORS, which depends on the origin of each request.
 */
const unstorableHeaders = new RegExp(
  `^(${[
    "connection|keep-alive|te|trailer|transfer-encoding|upgrade|via|proxy-.*",
    "date|age|content-(length|encoding|range)|server-timing|x-response-time|(x-)?ratelimit.*",
    "x-(request|correlation|amzn-trace|vercel)-id|trace(parent|state|response)|cf-.*",
    "set-cookie2?|www-authenticate|authentication-info",
    "access-control-.*|idempotent-.*",
  ].join("|")})$`,
);

/** Whether a response of this status has no body, not even an empty one. */
export function isBodiless(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

/** A stored response as an answer. */
export function replayResponse({ status, headers, body }: StoredResponse): Response {
  // No body in place of an empty one: @hono/node-server gives every body a content type. Some statuses must have none.
  return new Response(body?.length ? unshared(body) : null, {
    status,
    headers: {
      ...headers,
      "idempotent-replayed": "true",
      ...(!body && { "idempotent-body": "omitted" }),
    },
  });
}
