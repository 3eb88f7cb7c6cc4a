import { bodyHash } from "./body.ts";
import {
  generated,
  idFromBody,
  requireBytes,
  requireForm,
  requireForms,
  requireId,
  type WebhookProvider,
} from "./provider.ts";
import { badSignature, decodeBase64, requireSignature, signatureCheck } from "./signature.ts";

/** Options of {@link shopify}. */
export interface ShopifyOptions {
  /**
   * The app's client secret, or several while it is being rotated: each of them is accepted. Shopify may go
   * on signing with the old one for an hour.
   */
  readonly secret: string | readonly string[];
  /**
   * `"header"`: the id is `X-Shopify-Webhook-Id`, or `X-Shopify-Event-Id` where that is absent; neither is
   * signed. `"body"`: the hash of the body, which is. Default `"header"`.
   */
  readonly id?: "header" | "body" | undefined;
  /** Default `"shopify"`. Give apps with secrets of their own names of their own. */
  readonly name?: string | undefined;
}

/**
 * Shopify's webhooks: `X-Shopify-Hmac-Sha256`, the base64 HMAC-SHA256 of the body. The signature covers
 * neither the id (`idSigned: false`) nor shop and topic, and Shopify signs no time.
 *
 * The scope is shop and topic: one action of a merchant is told under several topics, with bodies and event
 * ids that may be equal. With `id: "body"` it is the topic alone: a body names its shop's resources, and
 * whoever captured one could otherwise send it again under any shop's name.
 *
 * Shopify waits 5 s for an answer and retries 8 times within 4 hours, with the same body.
 *
 * @throws {TypeError} at once, when a secret is empty or has white space in it.
 *
 * @example
 * const provider = shopify({ secret: env.SHOPIFY_CLIENT_SECRET });
 * const { id, scope } = await provider.verify(request, body);
 */
export function shopify(options: ShopifyOptions): WebhookProvider {
  const name = requireForm("name", options.name ?? "shopify");
  const fromBody = idFromBody(options.id);
  const signed = signatureCheck("HMAC-SHA256", requireForms("secret", options.secret, generated));

  return {
    name,
    async verify(request, body) {
      requireBytes(body);
      const signature = requireSignature(name, request, "x-shopify-hmac-sha256", "", decodeBase64, 32);
      const shop = requireId(name, request, "x-shopify-shop-domain");
      const topic = requireId(name, request, "x-shopify-topic");
      // Shopify's documentation named the event's id for this before it named the delivery's.
      const header = request.headers.has("x-shopify-webhook-id")
        ? "x-shopify-webhook-id"
        : "x-shopify-event-id";
      const id = fromBody ? undefined : requireId(name, request, header);
      if (!(await signed(signature, body))) throw badSignature(name);
      return id === undefined
        ? { id: await bodyHash(body), scope: [topic], idSigned: true }
        : { id, scope: [shop, topic], idSigned: false };
    },
  };
}
