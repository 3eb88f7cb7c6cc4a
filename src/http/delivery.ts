import type { VerifiedWebhook } from "../webhooks/index.ts";

/** A webhook's delivery whose signature was verified. */
export interface Delivery extends Omit<VerifiedWebhook, "secretTags"> {
  /** The provider's name. */
  readonly provider: string;
  /** Names that the id is unique within, besides the provider's name; empty if the id alone identifies the event. */
  readonly scope: readonly string[];
  /** The bytes that were verified. They are not copied: do not change them. */
  readonly body: Uint8Array;
}
