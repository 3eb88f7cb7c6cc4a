import type { Codec } from "../idempotency/index.ts";
import { unshared } from "../runtime/bytes.ts";
import { readUpTo } from "./body.ts";

// A letter (`t` text, `b` base64, `n` not stored), the status, headers as JSON, a line feed, the body:
// t200{"content-type":"text/plain"}\nok

export interface StoredResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | undefined;
}

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

/** Undefined if it is no text, or JSON would write it much longer. */
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
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < bytes.length; index += 1) bytes[index] = binary.charCodeAt(index);
  return bytes;
}

export interface StoragePolicy {
  readonly omitHeaders: readonly string[];
  readonly maxResponseBody: number;
  readonly store: (response: Response) => boolean;
}

/** @param isComplete no runtime adds a content type */
export async function captureResponse(
  response: Response,
  policy: StoragePolicy,
  isComplete = false,
): Promise<{ readonly response: Response; readonly stored?: StoredResponse }> {
  // Bun adds the type of a form or Blob when headers are read, but not after the body.
  const { status, headers, body: unread } = response;
  // 101 and 0 cannot be constructed again. 206 is a part named by the request's Range, which is not in the fingerprint.
  if (status < 200 || status > 599 || status === 206 || !policy.store(response)) return { response };
  const read = await readBody(response, policy.maxResponseBody);
  const sent = !unread || read === unread ? response : new Response(read as BodyInit, response);
  const body = ArrayBuffer.isView(read) ? read : undefined;
  if (body && sent !== response && !isComplete && isUntypedText(headers, body)) {
    sent.headers.set("content-type", "text/plain;charset=utf-8");
  }
  return { response: sent, stored: { status, headers: storedHeaders(sent, policy, body), body } };
}

/** Bun adds a string's type only when it sends the response, so bytes in its place would have none. */
function isUntypedText(headers: Headers, body: Uint8Array): boolean {
  const isUntyped = body.length > 0 && !headers.has("content-type");
  return isUntyped && !new Response("text").headers.has("content-type") && textOf(body) !== undefined;
}

async function readBody(response: Response, cap: number): Promise<Uint8Array | ReadableStream<Uint8Array>> {
  const { body } = response;
  if (!body) return new Uint8Array();
  return isStream(response, cap) ? body : readUpTo(body, cap);
}

/** The body ends late or never, is too large, or is encoded: only some platforms decode `content-encoding`. */
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
  const ofConnection = (headers.get("connection") ?? "").toLowerCase().split(/[\s,]+/);
  const omitted = new Set([...policy.omitHeaders, ...ofConnection, ...(body ? [] : headersOfBody)]);
  for (const [name, value] of headers) {
    if (!unstorableHeaders.test(name) && !omitted.has(name)) stored[name] = value;
  }
  return stored;
}

const headersOfBody = ["content-type", "content-digest", "content-md5", "digest"];

/**
 * Headers of one connection (RFC 9110, 7.6.1), of one message (time, trace, rate limit), secrets of one client, and
 * CORS, which depends on each request's origin.
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

export function isBodiless(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

export function replayResponse({ status, headers, body }: StoredResponse): Response {
  // @hono/node-server gives every body a type, even an empty one, and some statuses must have none.
  return new Response(body?.length ? unshared(body) : null, {
    status,
    headers: {
      ...headers,
      "idempotent-replayed": "true",
      ...(!body && { "idempotent-body": "omitted" }),
    },
  });
}
