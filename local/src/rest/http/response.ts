import { Buffer } from "node:buffer";
import { ReplyError } from "../../../../lock-server/src/engine/reply-error.ts";
import { plainReply } from "../backend.ts";
import type { WireReply } from "../redis/resp.ts";
import { RequestError } from "./request.ts";

/** How the strings of replies are encoded in JSON. */
export type Format = "json" | "base64";

/** An error as the REST API writes it. */
export const refused = (status: number, error: string): Response => Response.json({ error }, { status });

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
  if (reply === "OK") return { result: "OK" };
  return { result: format === "base64" ? base64(reply) : plainReply(reply) };
}

function base64(reply: WireReply): unknown {
  if (reply === null || typeof reply === "number") return reply;
  if (reply instanceof Uint8Array) return Buffer.from(reply).toString("base64");
  if (typeof reply === "string") return Buffer.from(reply).toString("base64");
  if (reply instanceof ReplyError) return base64(reply.message);
  return reply.map(base64);
}
