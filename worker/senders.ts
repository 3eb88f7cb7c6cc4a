import { HTTPException } from "hono/http-exception";
import type { Delivery } from "../src/http/index.ts";
import { github, standardWebhooks, stripe, type WebhookProvider } from "../src/webhooks/index.ts";
import type { Bindings } from "./bindings.ts";
import { problemResponse } from "./problem.ts";

/** What a verified delivery is about. */
export interface WebhookEvent {
  /** The sender's name for the event, such as `issues.opened` or `invoice.paid`. */
  readonly name: string;
  /** What it happened to, such as `github:octo/demo#42`. Events of one entity are handled one at a time. */
  readonly entity: string;
}

/** A sender of webhooks. */
export interface Sender {
  /** Part of its path, and of its keys: they stay the same when the secret is replaced, or the route moved. */
  readonly name: string;
  /** The binding with its secret. */
  readonly secret: `${"GITHUB_WEBHOOK" | "STANDARD_WEBHOOKS" | "STRIPE_WEBHOOK"}_SECRET`;
  readonly provider: (options: { readonly secret: string; readonly name: string }) => WebhookProvider;
  /** ms after which it gives up on an answer. docs/senders.md has the sources. */
  readonly timeout: number;
  /** The name of an event, and the id of what it happened to; undefined if it names neither. */
  readonly event: (payload: Payload, request: Request) => Partial<Record<"name" | "subject", unknown>>;
}

/** A sender's JSON. It is signed, so its form is the documented one. */
// biome-ignore lint/suspicious/noExplicitAny: a field may have any form, and eventOf uses only texts and numbers
type Payload = any;

/** All senders. For another one, add a row; docs/senders.md lists the providers. */
export const senders: readonly Sender[] = [
  {
    name: "github",
    secret: "GITHUB_WEBHOOK_SECRET",
    provider: github,
    timeout: 10_000,
    event(payload, { headers }) {
      const {
        action,
        repository,
        issue,
        pull_request: pullRequest,
        discussion,
        organization,
        sender,
      } = payload;
      const event = headers.get("x-github-event") ?? "event";
      const { number } = issue ?? pullRequest ?? discussion ?? {};
      const owner = repository?.full_name ?? organization?.login ?? sender?.login;
      return {
        name: action ? `${event}.${action}` : event,
        subject: number ? `${owner}#${number}` : owner,
      };
    },
  },
  {
    name: "standard-webhooks",
    secret: "STANDARD_WEBHOOKS_SECRET",
    provider: standardWebhooks,
    // Svix waits 15 s; other senders may not.
    timeout: 10_000,
    event: ({ type, data }) => ({ name: type, subject: data?.id }),
  },
  {
    name: "stripe",
    secret: "STRIPE_WEBHOOK_SECRET",
    provider: stripe,
    // Not published. This suits the shortest published timeout of a comparable sender.
    timeout: 5_000,
    event: ({ type, data }) => ({ name: type, subject: data?.object?.id }),
  },
];

/**
 * The provider that verifies a sender's deliveries.
 *
 * @throws {HTTPException} 501: the sender has no secret
 *
 * @example
 * const { id } = await providerOf(sender, env).verify(request, body);
 */
export function providerOf({ name, secret, provider }: Sender, env: Bindings): WebhookProvider {
  const value = env[secret];
  if (value) return provider({ secret: value, name });
  console.error(`${secret} is missing: a delivery of ${name} cannot be verified`);
  throw new HTTPException(501, { res: problemResponse(501, "This sender is not set up") });
}

/**
 * Reads what a verified delivery is about. An event that names nothing is its own entity, so no other one waits for it.
 *
 * @throws {HTTPException} 400: the body is not a JSON object, or its names cannot be stored; sending it again does not help
 *
 * @example
 * eventOf(stripe, request, delivery); // { name: "invoice.paid", entity: "stripe:in_42" }
 */
export function eventOf(sender: Sender, request: Request, { id, body }: Delivery): WebhookEvent {
  const { name, subject } = sender.event(parse(body), request);
  const event = { name: text(name) || "event", entity: `${sender.name}:${text(subject) || id}` };
  if (isStorable(event.name) && isStorable(event.entity)) return event;
  const title =
    "The event's name or subject is longer than 800 characters, or has a NUL or half of a surrogate pair";
  throw new HTTPException(400, { res: problemResponse(400, title) });
}

function parse(body: Uint8Array): Payload {
  try {
    const payload: unknown = JSON.parse(new TextDecoder().decode(body));
    if (typeof payload === "object" && payload !== null && !Array.isArray(payload)) return payload;
  } catch {
    // Answered below, as every other body that is no event.
  }
  const title = "The body is not a JSON object (GitHub: choose the content type application/json)";
  throw new HTTPException(400, { res: problemResponse(400, title) });
}

/** Whether the lock, the inbox and SQLite all take a text as it is. */
function isStorable(text: string): boolean {
  return text.length <= 800 && !/[\0\p{Surrogate}]/u.test(text);
}

/** A text or a number as text; "" for anything else. */
function text(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}
