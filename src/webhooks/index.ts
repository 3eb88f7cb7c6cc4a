export { type GitHubOptions, github } from "./github.ts";
export {
  type VerifiedWebhook,
  type WebhookProvider,
  WebhookVerificationError,
  type WebhookVerificationReason,
} from "./provider.ts";
export { type StandardWebhooksOptions, standardWebhooks } from "./standard-webhooks.ts";
