import { checkNames } from "../check.ts";
import { malformed, requireId } from "./header.ts";
import { generated, idFromBody, requireForms } from "./option.ts";
import type { WebhookProvider } from "./provider.ts";
import { uncheckedHmacProvider } from "./unchecked-hmac-provider.ts";

/** Options of {@link shopify}. */
export interface ShopifyOptions {
  /**
   * The app's client secret, or several while it is being rotated: each of them is accepted. Shopify may go on signing
   * with the old one for an hour.
   */
  readonly secret: string | readonly string[];
  /**
   * The topics that this address receives, e.g. `["orders/create", "orders/paid"]`; others are refused. The topic is
   * part of the scope, but not signed: without a list, anyone who captured a delivery could send it again under any
   * number of topics. Required unless `id` is `"header"`.
   */
  readonly topics?: string | readonly string[] | undefined;
  /**
   * `"body"`: the id is the SHA-256 of the body, which is signed. `"header"`: the id is `Shopify-Webhook-Id`, or
   * `Shopify-Event-Id` if that is absent; neither is signed. Default `"body"`.
   */
  readonly id?: "header" | "body" | undefined;
  /**
   * The provider's name in the scope of keys. Default `"shopify"` and a tag of the secrets, which keeps senders with
   * different secrets apart. With a name of your own the secrets are left out: give each sender its own name.
   */
  readonly name?: string | undefined;
}

const optionNames: Readonly<Record<keyof ShopifyOptions, 1>> = { secret: 1, id: 1, topics: 1, name: 1 };

/**
 * Shopify's webhooks and events: `X-Shopify-Hmac-Sha256`, or since 2026 `Shopify-Hmac-Sha256`, is the base64
 * HMAC-SHA256 of the body. The other headers follow the same two ways of naming; where both are present, those without
 * `X-` count, as in Shopify's own libraries. The signature covers neither the delivery's id nor shop and topic, and
 * Shopify signs no time. The id is the body's hash.
 *
 * The scope is the topic: one action of a merchant is sent under several topics, whose bodies may be equal. A captured
 * body can therefore be sent once under each of `topics`: decide by the body what happened. The shop is left out of
 * the scope, or a captured body could be sent again under the name of any shop. With `id: "header"` the scope is shop
 * and topic.
 *
 * Shopify waits 5 s for an answer and retries 8 times within 4 hours, with the same body.
 *
 * @throws {TypeError} at once: a secret is empty or contains white space, `topics` is missing, or an option is unknown
 *
 * @example
 * const provider = shopify({ secret: env.SHOPIFY_CLIENT_SECRET, topics: "orders/create" });
 * const { id, scope } = await provider.verify(request, body);
 */
export function shopify(options: ShopifyOptions): WebhookProvider {
  checkNames("shopify", options, optionNames);
  const name = options.name ?? "shopify";
  const fromBody = idFromBody(options.id);
  const secret = requireForms("secret", options.secret, generated);
  const topics = fromBody || options.topics !== undefined ? requireTopics(options.topics) : undefined;

  function providerFor(prefix: string): WebhookProvider {
    // Shopify's documentation named the event's id as the deduplication id before it named the delivery's.
    const idHeaders = [`${prefix}-webhook-id`, `${prefix}-event-id`];
    return uncheckedHmacProvider({
      name,
      tagSecrets: options.name === undefined,
      secret,
      header: `${prefix}-hmac-sha256`,
      encoding: "base64",
      id: fromBody ? undefined : { header: idHeaders },
      deliveryId: idHeaders,
      scope: (request) => scopeOf(request, prefix),
    });
  }

  function scopeOf(request: Request, prefix: string): readonly string[] {
    const shop = requireId(name, request, `${prefix}-shop-domain`);
    const topic = requireId(name, request, `${prefix}-topic`);
    if (topics?.includes(topic) === false) {
      throw malformed(name, `${prefix}-topic`, "is none of the topics that are received here");
    }
    return fromBody ? [topic] : [shop, topic];
  }

  const [newer, older] = [providerFor("shopify"), providerFor("x-shopify")];
  return {
    name,
    verify: (request, body) =>
      (request.headers.has("shopify-hmac-sha256") ? newer : older).verify(request, body),
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
