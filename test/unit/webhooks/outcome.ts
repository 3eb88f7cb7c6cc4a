import { createHash, createHmac } from "node:crypto";
import {
  type VerifiedWebhook,
  type WebhookProvider,
  WebhookVerificationError,
} from "../../../src/webhooks/index.ts";

/** A delivery as it arrives. */
export interface Arrival {
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly url?: string;
  readonly method?: string;
}

export const bytes = (text: string) => new TextEncoder().encode(text);
export const hash = (text: string) => createHash("sha256").update(text).digest("hex");

/** An HMAC in an encoding of Node's. */
export function hmac(
  key: string | Uint8Array,
  content: string | Uint8Array,
  encoding: "hex" | "base64" | "base64url" = "hex",
  algorithm = "sha256",
): string {
  return createHmac(algorithm, key).update(content).digest(encoding);
}

/** What a provider says of a delivery: the verified one, or the reason for its refusal. Any other error is thrown. */
export async function outcome(
  provider: WebhookProvider,
  { headers, body = "", url = "https://example.com/hooks", method = "POST" }: Arrival,
): Promise<VerifiedWebhook | string> {
  try {
    const given = typeof body === "string" ? bytes(body) : body;
    return await provider.verify(new Request(url, { method, headers }), given);
  } catch (error) {
    if (error instanceof WebhookVerificationError) return error.reason;
    throw error;
  }
}

/** The id of a delivery that is accepted. */
export async function idOf(provider: WebhookProvider, arrival: Arrival): Promise<string> {
  const verified = await outcome(provider, arrival);
  if (typeof verified === "string") throw new Error(`refused: ${verified}`);
  return verified.id;
}
