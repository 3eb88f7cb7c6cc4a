import { checkNames } from "../check.ts";
import { bodyHash, jsonFields } from "./body.ts";
import {
  deliveryIdIn,
  generated,
  idFromBody,
  requireBytes,
  requireForm,
  requireForms,
  requireId,
  type WebhookProvider,
} from "./provider.ts";
import { secretTags } from "./secret-tag.ts";
import { badSignature, decodeHex, requireSignature, signatureCheck } from "./signature.ts";
import { type ToleranceOptions, toleranceCheck } from "./tolerance.ts";

/** Options of {@link linear}; `tolerance` is 60 000 (one minute) by default. */
export interface LinearOptions extends ToleranceOptions {
  /** The webhook's signing secret, or several while it is being rotated: each of them is accepted. */
  readonly secret: string | readonly string[];
  /**
   * `"body"`: the id is the hash of the body, which is signed, without its `webhookTimestamp`, which tells when it
   * was sent and not what. `"header"`: the id is `Linear-Delivery`, which is not signed. Default `"body"`.
   */
  readonly id?: "header" | "body" | undefined;
  /**
   * Stands for this sender in the scope of keys. Default `"linear"` and a tag of the secrets, so that senders with
   * secrets of their own are apart; a name of your own leaves the secrets out: then give each sender one.
   */
  readonly name?: string | undefined;
}

const names: Readonly<Record<keyof LinearOptions, 1>> = { secret: 1, id: 1, tolerance: 1, now: 1, name: 1 };

/**
 * Linear's webhooks: `Linear-Signature`, the hex HMAC-SHA256 of the body. The id is the body's hash; `deliveryId`
 * is `Linear-Delivery`, which the signature does not cover. The signed time is the body's `webhookTimestamp`.
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
  checkNames("linear", options, names);
  const name = requireForm("name", options.name ?? "linear");
  const fromBody = idFromBody(options.id);
  const secrets = requireForms("secret", options.secret, generated);
  const signed = signatureCheck("HMAC-SHA256", secrets);
  const tags = secretTags(options.name, secrets);
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
      const rest = { timestamp, ...deliveryIdIn(request, "linear-delivery"), ...(await tags()) };
      if (id !== undefined) return { id, idSigned: false, ...rest };
      const content = new TextEncoder().encode(JSON.stringify(event));
      return { id: await bodyHash(content), idSigned: true, ...rest };
    },
  };
}
