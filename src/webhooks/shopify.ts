import { checkNames } from "../check.ts";
import { bodyHash } from "./body.ts";
import {
  deliveryIdIn,
  generated,
  idFromBody,
  malformed,
  requireBytes,
  requireForm,
  requireForms,
  requireId,
  type WebhookProvider,
} from "./provider.ts";
import { secretTags } from "./secret-tag.ts";
import { badSignature, decodeBase64, requireSignature, signatureCheck } from "./signature.ts";

/** Options of {@link shopify}. */
export interface ShopifyOptions {
  /**
   * The app's client secret, or several while it is being rotated: each of them is accepted. Shopify may go
   * on signing with the old one for an hour.
   */
  readonly secret: string | readonly string[];
  /**
   * The topics that are received here, e.g. `["orders/create", "orders/paid"]`; others are refused. The topic is
   * not signed, and belongs to the scope: without a list, anyone who captured a delivery could send it again under
   * any number of topics. Needed unless `id` is `"header"`.
   */
  readonly topics?: string | readonly string[] | undefined;
  /**
   * `"body"`: the id is the hash of the body, which is signed. `"header"`: the id is `X-Shopify-Webhook-Id`, or
   * `X-Shopify-Event-Id` where that is absent; neither is signed. Default `"body"`.
   */
  readonly id?: "header" | "body" | undefined;
  /**
   * Stands for this sender in the scope of keys. Default `"shopify"` and a tag of the secrets, so that senders with
   * secrets of their own are apart; a name of your own leaves the secrets out: then give each sender one.
   */
  readonly name?: string | undefined;
}

const names: Readonly<Record<keyof ShopifyOptions, 1>> = { secret: 1, id: 1, topics: 1, name: 1 };

/**
 * Shopify's webhooks: `X-Shopify-Hmac-Sha256`, the base64 HMAC-SHA256 of the body. The signature covers neither
 * the delivery's id nor shop and topic, and Shopify signs no time. The id is the body's hash.
 *
 * The scope is the topic: one action of a merchant is told under several topics, with bodies that may be equal.
 * So a captured body can be sent once under each of `topics`: what it means must follow from the body. The shop
 * is left out: anyone who captured a body could otherwise send it again under any shop's name. With `id: "header"`
 * the scope is shop and topic.
 *
 * Shopify waits 5 s for an answer and retries 8 times within 4 hours, with the same body.
 *
 * @throws {TypeError} at once, when a secret is empty or has white space in it, or `topics` is missing.
 *
 * @example
 * const provider = shopify({ secret: env.SHOPIFY_CLIENT_SECRET, topics: "orders/create" });
 * const { id, scope } = await provider.verify(request, body);
 */
export function shopify(options: ShopifyOptions): WebhookProvider {
  checkNames("shopify", options, names);
  const name = requireForm("name", options.name ?? "shopify");
  const fromBody = idFromBody(options.id);
  const secrets = requireForms("secret", options.secret, generated);
  const signed = signatureCheck("HMAC-SHA256", secrets);
  const tags = secretTags(options.name, secrets);
  const topics = fromBody || options.topics !== undefined ? requireTopics(options.topics) : undefined;

  return {
    name,
    async verify(request, body) {
      requireBytes(body);
      const signature = requireSignature(name, request, "x-shopify-hmac-sha256", "", decodeBase64, 32);
      const shop = requireId(name, request, "x-shopify-shop-domain");
      const topic = requireId(name, request, "x-shopify-topic");
      if (topics?.includes(topic) === false) {
        throw malformed(name, "x-shopify-topic", "is none of the topics that are received here");
      }
      // Shopify's documentation named the event's id for this before it named the delivery's.
      const hint = deliveryIdIn(request, "x-shopify-webhook-id", "x-shopify-event-id");
      const header = request.headers.has("x-shopify-webhook-id")
        ? "x-shopify-webhook-id"
        : "x-shopify-event-id";
      const id = fromBody ? undefined : requireId(name, request, header);
      if (!(await signed(signature, body))) throw badSignature(name);
      const rest = { ...hint, ...(await tags()) };
      return id === undefined
        ? { id: await bodyHash(body), scope: [topic], idSigned: true, ...rest }
        : { id, scope: [shop, topic], idSigned: false, ...rest };
    },
  };
}

function requireTopics(topics: ShopifyOptions["topics"]): readonly string[] {
  if (topics === undefined) {
    throw new TypeError(
      'topics must name the topics that are received here, e.g. ["orders/create"]: the topic is not signed (or set id: "header")',
    );
  }
  return requireForms("topics", topics, /^[\x21-\x7e]{1,255}$/);
}
