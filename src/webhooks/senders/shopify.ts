import { decodeBase64 } from "../encoding.ts";
import { malformed, requireId } from "../header.ts";
import { requireForms } from "../option-checks.ts";
import type { ShopifyOptions } from "../options.ts";
import type { WebhookProvider } from "../provider.ts";
import { sender } from "../sender.ts";

/**
 * Shopify's webhooks and events, signed in `Shopify-Hmac-Sha256`, or with `X-` before all headers. Only the body is
 * signed. The id is its hash and the scope the topic, so a captured body can be sent once under each of `topics`:
 * decide by the body what happened. With `id: "header"`, the id is `Shopify-Webhook-Id` and the scope shop and topic.
 * Events with equal bodies count as one: see docs/senders.md. Shopify may sign with an old secret for an hour.
 *
 * @param options `secret`: the app's client secret
 * @throws {TypeError} an option is wrong
 *
 * @example
 * const provider = shopify({ secret: env.SHOPIFY_CLIENT_SECRET, topics: "orders/create" });
 */
export function shopify(options: ShopifyOptions): WebhookProvider {
  const [newer, older] = [providerBy("shopify", options), providerBy("x-shopify", options)];
  return {
    ...newer,
    verify: (request, body) =>
      (request.headers.has("shopify-hmac-sha256") ? newer : older).verify(request, body),
  };
}

function providerBy(prefix: string, options: ShopifyOptions): WebhookProvider {
  return sender("shopify", options, {
    retries: 4 * 3_600_000,
    header: `${prefix}-hmac-sha256`,
    decode: decodeBase64,
    // Shopify has named each of them as the deduplication id.
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
