import { bodyHash, jsonFields } from "./body.ts";
import {
  generated,
  idFromBody,
  requireBytes,
  requireForm,
  requireForms,
  requireId,
  type WebhookProvider,
} from "./provider.ts";
import { badSignature, decodeHex, requireSignature, signatureCheck } from "./signature.ts";
import { type ToleranceOptions, toleranceCheck } from "./tolerance.ts";

/** Options of {@link linear}; `tolerance` is 60 000 (one minute) by default. */
export interface LinearOptions extends ToleranceOptions {
  /** The webhook's signing secret, or several while it is being rotated: each of them is accepted. */
  readonly secret: string | readonly string[];
  /**
   * `"header"`: the id is `Linear-Delivery`, which is not signed. `"body"`: the hash of the body without its
   * `webhookTimestamp`, which tells when it was sent and not what. Default `"header"`.
   */
  readonly id?: "header" | "body" | undefined;
  /** Default `"linear"`. Give webhooks with secrets of their own names of their own. */
  readonly name?: string | undefined;
}

/**
 * Linear's webhooks: `Linear-Signature`, the hex HMAC-SHA256 of the body, and the id from `Linear-Delivery`,
 * which the signature does not cover (`idSigned: false`). The signed time is the body's `webhookTimestamp`.
 *
 * Linear waits 5 s for an answer, takes nothing but 200, and retries after 1 minute, 1 hour and 6 hours.
 *
 * @throws {TypeError} at once, when a secret is empty or has white space in it.
 * @throws {RangeError} at once, when `tolerance` is out of range.
 *
 * @example
 * const provider = linear({ secret: env.LINEAR_WEBHOOK_SECRET });
 * const { id, timestamp } = await provider.verify(request, body);
 */
export function linear(options: LinearOptions): WebhookProvider {
  const name = requireForm("name", options.name ?? "linear");
  const fromBody = idFromBody(options.id);
  const signed = signatureCheck("HMAC-SHA256", requireForms("secret", options.secret, generated));
  const checkTolerance = toleranceCheck(name, options, 60_000);

  return {
    name,
    async verify(request, body) {
      requireBytes(body);
      const signature = requireSignature(name, request, "linear-signature", "", decodeHex, 32);
      const id = fromBody ? undefined : requireId(name, request, "linear-delivery");
      if (!(await signed(signature, body))) throw badSignature(name);
      const { webhookTimestamp, ...event } = jsonFields(body);
      const timestamp = typeof webhookTimestamp === "number" ? webhookTimestamp : Number.NaN;
      checkTolerance(timestamp);
      if (id !== undefined) return { id, timestamp, idSigned: false };
      const content = new TextEncoder().encode(JSON.stringify(event));
      return { id: await bodyHash(content), timestamp, idSigned: true };
    },
  };
}
