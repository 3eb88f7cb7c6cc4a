/**
 * Check the signatures of webhooks from 17 senders.
 *
 * @module redlock-edge/webhooks
 */
export type * from "./options.ts";
export {
  type VerifiedWebhook,
  type WebhookProvider,
  WebhookVerificationError,
  type WebhookVerificationReason,
} from "./provider.ts";
export { metaChallenge, zoomChallenge } from "./senders/challenges.ts";
export { hubspot } from "./senders/hubspot.ts";
export { qstash } from "./senders/qstash.ts";
export { shopify } from "./senders/shopify.ts";
export { standardWebhooks } from "./senders/standard-webhooks.ts";
export * from "./senders/table.ts";
export { twilio } from "./senders/twilio.ts";
export { secretTag } from "./signature-check.ts";
