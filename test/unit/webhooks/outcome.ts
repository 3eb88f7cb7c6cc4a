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

/** What a provider says of a delivery: the verified one, or the reason for its refusal. Any other error is thrown. */
export async function outcome(
  provider: WebhookProvider,
  { headers, body = "", url = "https://example.com/hooks", method = "POST" }: Arrival,
): Promise<VerifiedWebhook | string> {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  try {
    return await provider.verify(new Request(url, { method, headers }), bytes);
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
