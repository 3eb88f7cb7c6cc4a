import { Buffer } from "node:buffer";
import { ReplyError } from "../../../../lock-server/src/engine/reply-error.ts";
import { encodeReply, StatusReply, type WireReply } from "../redis/resp.ts";
import { RequestError } from "./request.ts";

/** How the replies of a request are encoded: JSON, JSON with base64 strings, or RESP2. */
export type Format = "json" | "base64" | "resp2";

/**
 * The format that the headers `Upstash-Response-Format` and `Upstash-Encoding` ask for. Throws `RequestError` 400 for
 * an unknown value, and for base64 together with resp2.
 */
export function formatOf(headers: Headers): Format {
  const format = headers.get("upstash-response-format");
  const encoding = headers.get("upstash-encoding");
  if (format !== null && format !== "json" && format !== "resp2") {
    throw new RequestError(400, `ERR Upstash-Response-Format is json or resp2, not '${format}'`);
  }
  if (encoding !== null && encoding !== "" && encoding !== "base64") {
    throw new RequestError(400, `ERR Upstash-Encoding is base64, not '${encoding}'`);
  }
  if (encoding !== "base64") return format ?? "json";
  if (format === "resp2") throw new RequestError(400, "ERR Upstash-Encoding base64 does not go with resp2");
  return "base64";
}

/** One reply as Upstash's JSON: `{"result": …}` or `{"error": …}`. */
export function envelope(reply: WireReply, format: Format): { result: unknown } | { error: string } {
  if (reply instanceof ReplyError) return { error: reply.message };
  // Upstash never encodes OK as a whole reply, and the SDK expects that.
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

/** A response whose body is the replies in RESP2, one after another. `status`: the HTTP status, default 200. */
export function resp2Response(replies: readonly WireReply[], status = 200): Response {
  const body = Buffer.concat(replies.map(encodeReply));
  return new Response(new Uint8Array(body), {
    status,
    headers: { "content-type": "application/octet-stream" },
  });
}
