import {
  github,
  linear,
  shopify,
  slack,
  standardWebhooks,
  stripe,
  type WebhookProvider,
} from "../src/webhooks/index.ts";
import { type Bindings, orBindingError, secretHint } from "./bindings.ts";
import {
  githubEvent,
  linearEvent,
  shopifyEvent,
  slackEvent,
  standardWebhooksEvent,
  stripeEvent,
  type WebhookEvent,
} from "./event.ts";

/** A sender of webhooks. Its secret is all that it takes to set it up. */
export interface Sender {
  /** The name of its provider. */
  readonly name: string;
  /** The path that it sends to. */
  readonly path: string;
  /** The binding with its secret. */
  readonly secret: Exclude<keyof Bindings, "DB" | `UPSTASH_REDIS_REST_${string}`>;
  readonly provider: (secret: string) => WebhookProvider;
  /** Reads what a verified delivery is about. */
  readonly event: (request: Request, body: Uint8Array, id: string) => WebhookEvent;
  /** ms after which this sender gives up on an answer. docs/webhooks.md has the sources. */
  readonly senderTimeout: number;
}

/**
 * The topics that the app subscribes to. Topics are not signed: others are refused, or a captured delivery could be
 * sent again under invented topics.
 */
const shopifyTopics = [
  ...["create", "updated", "paid", "cancelled", "fulfilled", "delete"].map((action) => `orders/${action}`),
  ...["create", "update", "delete"].flatMap((action) => [`products/${action}`, `customers/${action}`]),
  "refunds/create",
  "app/uninstalled",
];

/**
 * All senders. Each has one secret and a name of its own, so its keys stay the same when the secret is replaced.
 * Discord is not among them: each of its interactions needs a specific answer, and its events need 204.
 */
export const senders = {
  github: {
    name: "github",
    path: "/webhooks/github",
    secret: "GITHUB_WEBHOOK_SECRET",
    provider: (secret) => github({ secret, name: "github" }),
    event: (request, body) => githubEvent(request, body),
    senderTimeout: 10_000,
  },
  standardWebhooks: {
    name: "standard-webhooks",
    path: "/webhooks/standard",
    secret: "STANDARD_WEBHOOKS_SECRET",
    provider: (secret) => standardWebhooks({ secret, name: "standard-webhooks" }),
    event: (_request, body, id) => standardWebhooksEvent(body, id),
    // Svix waits 15 s; other senders may not.
    senderTimeout: 10_000,
  },
  stripe: {
    name: "stripe",
    path: "/webhooks/stripe",
    secret: "STRIPE_WEBHOOK_SECRET",
    provider: (secret) => stripe({ secret, name: "stripe" }),
    event: (_request, body, id) => stripeEvent(body, id),
    // Not published. This suits the shortest published timeout of a comparable sender.
    senderTimeout: 5_000,
  },
  shopify: {
    name: "shopify",
    path: "/webhooks/shopify",
    secret: "SHOPIFY_CLIENT_SECRET",
    provider: (secret) => shopify({ secret, topics: shopifyTopics, name: "shopify" }),
    event: shopifyEvent,
    senderTimeout: 5_000,
  },
  slack: {
    name: "slack",
    path: "/webhooks/slack",
    secret: "SLACK_SIGNING_SECRET",
    provider: (secret) => slack({ secret, name: "slack" }),
    event: (_request, body) => slackEvent(body),
    senderTimeout: 3_000,
  },
  linear: {
    name: "linear",
    path: "/webhooks/linear",
    secret: "LINEAR_WEBHOOK_SECRET",
    // Linear does not publish whether a retry, the last of which comes after 7 hours, has a new time. If it were
    // refused as too old, the event would be lost.
    provider: (secret) => linear({ secret, tolerance: 8 * 60 * 60 * 1_000, name: "linear" }),
    event: (_request, body, id) => linearEvent(body, id),
    senderTimeout: 5_000,
  },
} satisfies Record<string, Sender>;

/** A sender has no secret, so none of its deliveries can be verified. */
export class NotSetUpError extends Error {
  override readonly name = "NotSetUpError";
  /** What to do about it. */
  readonly hint: string;

  constructor({ secret }: Sender) {
    super(`the binding ${secret} is missing`);
    this.hint = secretHint(secret);
  }
}

/**
 * Makes the provider that verifies a sender's deliveries.
 *
 * @throws {NotSetUpError} its secret is missing
 * @throws {BindingError} its secret is malformed
 *
 * @example
 * const { id } = await providerOf(senders.github, env).verify(request, body);
 */
export function providerOf(sender: Sender, env: Bindings): WebhookProvider {
  const secret = env[sender.secret];
  if (!secret) throw new NotSetUpError(sender);
  return orBindingError(sender.secret, () => sender.provider(secret));
}

/**
 * The senders that have a secret, with their names in {@link senders}.
 *
 * @example
 * sendersOf({ GITHUB_WEBHOOK_SECRET: "…" }); // [["github", senders.github]]
 */
export function sendersOf(env: Bindings): readonly (readonly [string, Sender])[] {
  return Object.entries<Sender>(senders).filter(([, { secret }]) => env[secret]);
}
