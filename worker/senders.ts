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

/** Somebody who can send webhooks to this Worker. It is set up by its secret alone. */
export interface Sender {
  /** As the provider calls it. */
  readonly name: string;
  /** Where it sends to. */
  readonly path: string;
  /** The binding with its secret. */
  readonly secret: Exclude<keyof Bindings, "DB" | `UPSTASH_REDIS_REST_${string}`>;
  readonly provider: (secret: string) => WebhookProvider;
  /** What a genuine delivery is about. */
  readonly event: (request: Request, body: Uint8Array, id: string) => WebhookEvent;
  /** How long it waits for an answer, in ms; docs/webhooks.md has the sources. */
  readonly timeout: number;
}

/**
 * The topics that are subscribed to. Topics are not signed: others are refused, so that a delivery that somebody
 * captured cannot be sent again under names made up for it.
 */
const shopifyTopics = [
  ...["create", "updated", "paid", "cancelled", "fulfilled", "delete"].map((what) => `orders/${what}`),
  ...["create", "update", "delete"].flatMap((what) => [`products/${what}`, `customers/${what}`]),
  "refunds/create",
  "app/uninstalled",
];

/**
 * All senders. Each has a name of its own and one secret: its keys then stay the same when the secret is replaced.
 * Discord is not among them: its interactions want an answer of their own to each, and its
 * events nothing but 204.
 */
export const senders = {
  github: {
    name: "github",
    path: "/webhooks/github",
    secret: "GITHUB_WEBHOOK_SECRET",
    provider: (secret) => github({ secret, name: "github" }),
    event: (request, body) => githubEvent(request, body),
    timeout: 10_000,
  },
  standardWebhooks: {
    name: "standard-webhooks",
    path: "/webhooks/standard",
    secret: "STANDARD_WEBHOOKS_SECRET",
    provider: (secret) => standardWebhooks({ secret, name: "standard-webhooks" }),
    event: (_request, body, id) => standardWebhooksEvent(body, id),
    // Svix waits for 15 s; others may not.
    timeout: 10_000,
  },
  stripe: {
    name: "stripe",
    path: "/webhooks/stripe",
    secret: "STRIPE_WEBHOOK_SECRET",
    provider: (secret) => stripe({ secret, name: "stripe" }),
    event: (_request, body, id) => stripeEvent(body, id),
    // Not published: what suits the most impatient of its kind.
    timeout: 5_000,
  },
  shopify: {
    name: "shopify",
    path: "/webhooks/shopify",
    secret: "SHOPIFY_CLIENT_SECRET",
    provider: (secret) => shopify({ secret, topics: shopifyTopics, name: "shopify" }),
    event: shopifyEvent,
    timeout: 5_000,
  },
  slack: {
    name: "slack",
    path: "/webhooks/slack",
    secret: "SLACK_SIGNING_SECRET",
    provider: (secret) => slack({ secret, name: "slack" }),
    event: (_request, body) => slackEvent(body),
    timeout: 3_000,
  },
  linear: {
    name: "linear",
    path: "/webhooks/linear",
    secret: "LINEAR_WEBHOOK_SECRET",
    // Whether a retry, the last after 7 hours, has a new time is not published. Were it refused as too old, the
    // event would be lost.
    provider: (secret) => linear({ secret, tolerance: 8 * 60 * 60 * 1_000, name: "linear" }),
    event: (_request, body, id) => linearEvent(body, id),
    timeout: 5_000,
  },
} satisfies Record<string, Sender>;

/** A sender has no secret, so nothing that comes from it can be genuine. */
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
 * What tells whether a sender's deliveries are genuine.
 *
 * @throws {NotSetUpError} its secret is missing
 * @throws {BindingError} its secret is not of its form
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
 * The senders that are set up, with their names in {@link senders}.
 *
 * @example
 * sendersOf({ GITHUB_WEBHOOK_SECRET: "…" }); // [["github", senders.github]]
 */
export function sendersOf(env: Bindings): readonly (readonly [string, Sender])[] {
  return Object.entries<Sender>(senders).filter(([, { secret }]) => env[secret]);
}
