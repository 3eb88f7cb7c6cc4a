/** @module redlock-edge/webhooks */
export { sha256 } from "../bytes.ts";
export type { SignatureAlgorithm } from "./algorithm.ts";
export { bodyHash, bodyId } from "./body.ts";
export { decodeBase64, decodeBase64Url, decodeDer, decodeHex, decodePublicKey } from "./decode.ts";
export { type DiscordOptions, discord } from "./discord.ts";
export { type Encoding, encodeBytes } from "./encode.ts";
export { constantTimeEqual } from "./equal.ts";
export { type GitHubOptions, github } from "./github.ts";
export { requireHeader, requireId } from "./header.ts";
export type { HmacId, HmacProviderOptions, HmacTime } from "./hmac-options.ts";
export { hmacProvider } from "./hmac-provider.ts";
export { type HubSpotOptions, hubspot } from "./hubspot.ts";
export { requireJwt, type SignedJwt } from "./jwt.ts";
export { type LemonSqueezyOptions, lemonSqueezy } from "./lemon-squeezy.ts";
export { type LinearOptions, linear } from "./linear.ts";
export { type MetaOptions, meta, metaChallenge } from "./meta.ts";
export { type PaddleOptions, paddle } from "./paddle.ts";
export {
  type VerifiedWebhook,
  type WebhookProvider,
  WebhookVerificationError,
  type WebhookVerificationReason,
} from "./provider.ts";
export { type QStashOptions, qstash } from "./qstash.ts";
export { secretTag } from "./secret-tag.ts";
export { type SendGridOptions, sendgrid } from "./sendgrid.ts";
export { type ShopifyOptions, shopify } from "./shopify.ts";
export { requireSignature, type SignatureCheck, type SignatureForm, signatureCheck } from "./signature.ts";
export type { SignatureProviderOptions, SignedContent, SignedRequest } from "./signature-options.ts";
export { signatureProvider } from "./signature-provider.ts";
export { type SlackOptions, slack } from "./slack.ts";
export { type SquareOptions, square } from "./square.ts";
export { type StandardWebhooksOptions, standardWebhooks } from "./standard-webhooks.ts";
export { type StripeOptions, stripe } from "./stripe.ts";
export { parseSeconds, type ToleranceCheck, type ToleranceOptions, toleranceCheck } from "./tolerance.ts";
export { type TwilioOptions, twilio } from "./twilio.ts";
export { type TwitchOptions, twitch } from "./twitch.ts";
export type { SignedUrl } from "./url.ts";
export { type ZoomOptions, zoom, zoomChallenge } from "./zoom.ts";
