import { decodeBase64 } from "../encoding.ts";
import { malformed, requireId } from "../header.ts";
import { requireForms } from "../option-checks.ts";
import type { ShopifyOptions } from "../options.ts";
import type { WebhookProvider } from "../provider.ts";
import { sender } from "../sender.ts";

/**
 * Shopify's webhooks and events: `X-Shopify-Hmac-Sha256`, or since 2026 `Shopify-Hmac-Sha256`, is the base64 HMAC-SHA256 of the
 * body. The other headers follow these two ways of naming, too. If both are present, headers without `X-` count, as in
 * Shopify's own libraries. The signature covers neither the delivery's id nor shop and topic, and Shopify signs no time. The id
 * is the body's hash, or with `id: "header"` `Shopify-Webhook-Id`, or `Shopify-Event-Id` if that is absent.
 *
 * The scope is the topic: one action of a merchant is sent under several topics, whose bodies may be equal. A captured
 * body can therefore be sent once under each of `topics`: decide by the body what happened. The shop is left out of
 * the scope, or a captured body could be sent again under the name of any shop. With `id: "header"` the scope is shop
 * and topic.
 *
 * Bodies that contain only ids, such as those of `inventory_levels/disconnect`, are equal when the event happens again, and
 * then count as one: see docs/senders.md.
 *
 * Shopify waits 5 s for an answer and retries 8 times within 4 hours, with an equal body. It may go on signing with an
 * old secret for an hour.
 *
 * @param options `secret`: the app's client secret
 * @throws {TypeError} at once: an option is unknown, missing or not of its form
 *
 * @example
 * const provider = shopify({ secret: env.SHOPIFY_CLIENT_SECRET, topics: "orders/create" });
 * const { id, scope } = await provider.verify(request, body);
 */
export function shopify(options: ShopifyOptions): WebhookProvider {
  const [newer, older] = [providerBy("shopify", options), providerBy("x-shopify", options)];
  return {
    ...newer,
    verify: (request, body) =>
      (request.headers.has("shopify-hmac-sha256") ? newer : older).verify(request, body),
  };
}

/** The provider for one of the two ways of naming the headers. */
function providerBy(prefix: string, options: ShopifyOptions): WebhookProvider {
  return sender("shopify", options, {
    retries: 4 * 3_600_000,
    header: `${prefix}-hmac-sha256`,
    decode: decodeBase64,
    // Shopify's documentation named the event's id as the deduplication id before it named the delivery's.
    deliveryId: [`${prefix}-webhook-id`, `${prefix}-event-id`],
    idOption: "optional",
    moreOptions: ["topics"],
    scope({ name, fromBody }) {
      const topics = fromBody || options.topics !== undefined ? requireTopics(options.topics) : undefined;
      return (request) => {
        const shop = requireId(name, request, `${prefix}-shop-domain`);
        const topic = requireId(name, request, `${prefix}-topic`);
        if (topics?.includes(topic) === false) {
          throw malformed(name, `${prefix}-topic`, "is none of the topics that are received here");
        }
        return fromBody ? [topic] : [shop, topic];
      };
    },
  });
}

function requireTopics(topics: ShopifyOptions["topics"]): readonly string[] {
  if (topics === undefined) {
    throw new TypeError(
      'topics must name the topics that are received here, e.g. ["orders/create"]: the topic is not signed (or set id: "header")',
    );
  }
  return requireForms("topics", topics, /^[!-+\--~]{1,255}$/);
}
