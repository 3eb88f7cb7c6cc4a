export { bodyHash } from "./body.ts";
export { decodeBase64, decodeHex } from "./decode.ts";
export { type DiscordOptions, discord } from "./discord.ts";
export { type GitHubOptions, github } from "./github.ts";
export { requireHeader, requireId } from "./header.ts";
export type { HmacId, HmacProviderOptions, HmacTime } from "./hmac-options.ts";
export { hmacProvider } from "./hmac-provider.ts";
export { type LinearOptions, linear } from "./linear.ts";
export {
  type VerifiedWebhook,
  type WebhookProvider,
  WebhookVerificationError,
  type WebhookVerificationReason,
} from "./provider.ts";
export { secretTag } from "./secret-tag.ts";
export { type ShopifyOptions, shopify } from "./shopify.ts";
export { type SignatureCheck, signatureCheck } from "./signature.ts";
export { type SlackOptions, slack } from "./slack.ts";
export { type StandardWebhooksOptions, standardWebhooks } from "./standard-webhooks.ts";
export { type StripeOptions, stripe } from "./stripe.ts";
export type { ToleranceOptions } from "./tolerance.ts";
