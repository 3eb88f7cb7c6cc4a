import { Buffer } from "node:buffer";
import { ReplyError } from "../../../../lock-server/src/engine/reply-error.ts";
import { StatusReply, type WireReply } from "../redis/resp.ts";
import { RequestError } from "./request.ts";

/** How the strings of replies are encoded in JSON. */
export type Format = "json" | "base64";

/** The format that the header `Upstash-Encoding` asks for. Throws `RequestError` 400 for an unknown one. */
export function formatOf(headers: Headers): Format {
  const encoding = headers.get("upstash-encoding") ?? "";
  if (encoding === "" || encoding === "base64") return encoding || "json";
  throw new RequestError(400, `ERR Upstash-Encoding is base64, not '${encoding}'`);
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
