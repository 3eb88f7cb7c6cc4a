/** What a verified delivery is about. */
export interface WebhookEvent {
  /** The sender's name for the event, e.g. `issues.opened` or `invoice.paid`. */
  readonly name: string;
  /** What it happened to, e.g. `github:octo/demo#42`. Events about one entity are handled one at a time. */
  readonly entity: string;
  /** The sender checks that the address answers: respond with this text. There is no event to handle. */
  readonly challenge?: string;
}

/** A verified delivery that cannot be understood. Sending it again does not help. */
export class EventError extends Error {
  override readonly name = "EventError";
}

/** Length of the longest text, in UTF-16 code units, that the columns of the page can show. */
const maxTextLength = 255;

type Fields = Readonly<Record<string, unknown>>;

/**
 * Reads what a delivery of GitHub is about: an issue, pull request or discussion if it has one, else the branch or
 * tag, else the repository, else the account.
 *
 * @throws {EventError} the body is not a JSON object, or `x-github-event` is missing or malformed
 *
 * @example
 * githubEvent(request, body); // { name: "issues.opened", entity: "github:octo/demo#42" }
 */
export function githubEvent(request: Request, body: Uint8Array): WebhookEvent {
  const event = request.headers.get("x-github-event") ?? "";
  if (!/^[a-z0-9_]{1,64}$/.test(event)) throw new EventError("x-github-event is missing or no event's name");
  const payload = parse(body);
  const action = text(payload.action);
  return { name: action ? `${event}.${action}` : event, entity: `github:${githubSubject(payload)}` };
}

/**
 * Reads what a Standard Webhook is about: the object whose id is `data.id`. An event without one is its own entity, so
 * no other event waits for it.
 *
 * @param id the delivery's verified id, used if the event names no object
 * @throws {EventError} the body is not a JSON object
 *
 * @example
 * standardWebhooksEvent(body, "msg_1"); // { name: "invoice.paid", entity: "standard-webhooks:inv_42" }
 */
export function standardWebhooksEvent(body: Uint8Array, id: string): WebhookEvent {
  const payload = parse(body);
  return {
    name: text(payload.type) || "event",
    entity: `standard-webhooks:${text(fields(payload.data).id) || text(id)}`,
  };
}

/**
 * Reads what an event of Stripe is about: the object that it contains or, if it is a thin event, relates to. A few
 * objects, balances among them, have no id: such an event is its own entity.
 *
 * @param id the delivery's verified id, used if the event names no object
 * @throws {EventError} the body is not a JSON object
 *
 * @example
 * stripeEvent(body, "evt_1"); // { name: "invoice.paid", entity: "stripe:in_42" }
 */
export function stripeEvent(body: Uint8Array, id: string): WebhookEvent {
  const payload = parse(body);
  const subject = text(fields(fields(payload.data).object).id) || text(fields(payload.related_object).id);
  return { name: text(payload.type) || "event", entity: `stripe:${subject || text(id)}` };
}

/**
 * Reads what a webhook of Shopify is about: an object of a shop. Shop and topic come from headers that are not signed.
 *
 * @param id the delivery's verified id, used if the event names no object
 * @throws {EventError} the body is not a JSON object
 *
 * @example
 * shopifyEvent(request, body, "…"); // { name: "orders/paid", entity: "shopify:a.myshopify.com/orders/42" }
 */
export function shopifyEvent({ headers }: Request, body: Uint8Array, id: string): WebhookEvent {
  const payload = parse(body);
  const topic = text(headers.get("x-shopify-topic"));
  const [kind] = topic.split("/");
  return {
    name: topic || "event",
    entity: `shopify:${text(headers.get("x-shopify-shop-domain"))}/${kind}/${text(payload.id) || text(id)}`,
  };
}

/**
 * Reads what an event of Slack is about: the channel it happened in, else the user, else the workspace.
 *
 * @throws {EventError} the body is not a JSON object; commands and interactions are forms
 *
 * @example
 * slackEvent(body); // { name: "message", entity: "slack:T1/C42" }
 */
export function slackEvent(body: Uint8Array): WebhookEvent {
  const payload = parse(body);
  const event = fields(payload.event);
  const candidates = [event.channel, fields(event.item).channel, event.user];
  const subject = candidates.map((candidate) => text(candidate) || text(fields(candidate).id)).find(Boolean);
  const workspace = text(payload.team_id) || "unknown";
  return {
    name: text(event.type) || text(payload.type) || "event",
    entity: `slack:${subject ? `${workspace}/${subject}` : workspace}`,
    ...(payload.type === "url_verification" && { challenge: text(payload.challenge) }),
  };
}

/**
 * Reads what a webhook of Linear is about: the object whose data it contains.
 *
 * @param id the delivery's verified id, used if the event names no object
 * @throws {EventError} the body is not a JSON object
 *
 * @example
 * linearEvent(body, "…"); // { name: "Issue.update", entity: "linear:2174add1-…" }
 */
export function linearEvent(body: Uint8Array, id: string): WebhookEvent {
  const payload = parse(body);
  const name = [payload.type, payload.action].map(text).filter(Boolean).join(".");
  return { name: name || "event", entity: `linear:${text(fields(payload.data).id) || text(id)}` };
}

function githubSubject(payload: Fields): string {
  const repository = text(fields(payload.repository).full_name);
  if (!repository) {
    const accounts = [payload.organization, fields(payload.installation).account, payload.sender];
    // A security advisory belongs to no account: it is its own entity.
    return (
      accounts.map((account) => text(fields(account).login)).find(Boolean) ??
      (text(fields(payload.security_advisory).ghsa_id) || "unknown")
    );
  }
  const { issue, pull_request: pullRequest, discussion, ref } = payload;
  const numbers = [issue, pullRequest, discussion].map((subject) => text(fields(subject).number));
  const number = numbers.find(Boolean) ?? text(payload.number);
  if (number) return `${repository}#${number}`;
  // `create` and `delete` give the short name of a branch or tag, `push` the full one. Both must lock one resource.
  const branch = text(ref).replace(/^refs\/(heads|tags)\//, "");
  return branch ? `${repository}@${branch}` : repository;
}

function parse(body: Uint8Array): Fields {
  let payload: unknown;
  try {
    payload = JSON.parse(new TextDecoder().decode(body));
  } catch {
    throw new EventError("the body is not JSON (GitHub: choose the content type application/json)");
  }
  if (typeof payload !== "object" || payload === null || Array.isArray(payload)) {
    throw new EventError("the body is not a JSON object");
  }
  return payload as Fields;
}

function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

/**
 * A string or number as text that fits into a key and onto a page; anything else becomes "". Half of a surrogate pair
 * becomes U+FFFD if it was in the JSON, and is dropped if the cut left it: a lock would refuse it at every redelivery.
 */
function text(value: unknown): string {
  if (typeof value !== "string" && typeof value !== "number") return "";
  return String(value)
    .replace(/\p{Surrogate}/gu, "\uFFFD")
    .slice(0, maxTextLength)
    .replace(/\p{Surrogate}$/u, "");
}
