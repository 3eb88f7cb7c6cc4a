import type { Codec } from "../idempotency/index.ts";
import { readUpTo } from "./body.ts";

// A response as it is stored: one letter for how the body is written, the status, the headers as JSON, a line
// feed, the body. `t`: text; `b`: base64, where it is no text; `n`: it was not kept.
//   t201{"content-type":"application/json","location":"/payments/7"}
//   {"id":7}

/** What is kept of a response, to be answered again. */
export interface StoredResponse {
  /** 200 … 599. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined: it was a stream, or too large, and only status and headers were kept. */
  readonly body: Uint8Array | undefined;
}

/** How responses are stored. */
export const responseCodec: Codec<StoredResponse> = {
  encode({ status, headers, body }) {
    const head = `${status}${JSON.stringify(headers)}\n`;
    if (!body) return `n${head}`;
    const text = textOf(body);
    return text === undefined ? `b${head}${toBase64(body)}` : `t${head}${text}`;
  },
  decode(text) {
    const [head = "", kind, status, headers = ""] = /^([tbn])([2-5]\d\d)(\{.*\})\n/.exec(text) ?? [];
    if (!kind) throw new TypeError("it is not a response");
    const body = text.slice(head.length);
    return {
      status: Number(status),
      headers: JSON.parse(headers),
      body: kind === "t" ? new TextEncoder().encode(body) : kind === "b" ? fromBase64(body) : undefined,
    };
  },
};

/** The text that these bytes are, if they are one that JSON writes in about as many bytes. */
function textOf(bytes: Uint8Array): string | undefined {
  try {
    // A byte order mark is a part of the body like any other.
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
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/** What {@link keep} goes by. */
export interface Keeping {
  /** Which headers are kept, in lower case. */
  readonly headers: readonly string[];
  readonly maxResponseBody: number;
  readonly streams: "status" | "nothing";
  readonly store: (response: Response) => boolean;
}

/**
 * Takes down what is to be stored of a response, if anything is, and returns the response to be sent: the same,
 * also where its body had to be read.
 */
export async function keep(
  response: Response,
  keeping: Keeping,
): Promise<{ readonly response: Response; readonly stored?: StoredResponse }> {
  const { status, body } = response;
  // 101 is an upgraded connection, 0 a network error: neither can be made again.
  if (status < 200 || status > 599 || !keeping.store(response)) return { response };
  const cap = keeping.maxResponseBody;
  const read = !body ? new Uint8Array() : isStream(response, cap) ? body : await readUpTo(body, cap);
  const sent = !body || read === body ? response : new Response(read as BodyInit, response);
  const kept = ArrayBuffer.isView(read) ? read : undefined;
  if (!kept && keeping.streams === "nothing") return { response: sent };
  return { response: sent, stored: { status, headers: keptHeaders(response, keeping, kept), body: kept } };
}

/**
 * Whether a body must not be read before it is sent: because it ends late or never, is too large, or is encoded:
 * its bytes mean nothing without `content-encoding`, which some platforms undo and others do not.
 */
function isStream({ headers }: Response, cap: number): boolean {
  return (
    /^text\/event-stream\b/i.test(headers.get("content-type") ?? "") ||
    headers.has("transfer-encoding") ||
    !/^(identity)?$/i.test(headers.get("content-encoding") ?? "") ||
    Number(headers.get("content-length")) > cap
  );
}

function keptHeaders(
  { headers }: Response,
  keeping: Keeping,
  body: Uint8Array | undefined,
): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of keeping.headers) {
    const value = headers.get(name);
    if (value !== null && (body || name !== "content-type")) kept[name] = value;
  }
  return kept;
}

/** A stored response as the answer to `request`. */
export function replayed({ status, headers, body }: StoredResponse, { method }: Request): Response {
  const bodiless = method === "HEAD" || status === 204 || status === 205 || status === 304;
  return new Response(bodiless ? null : ((body ?? null) as BodyInit | null), {
    status,
    headers: {
      ...headers,
      "idempotent-replayed": "true",
      ...(!body && { "idempotent-body": "omitted" }),
    },
  });
}
