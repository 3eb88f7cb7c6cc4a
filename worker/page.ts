/** The outcomes of a delivery, as in the column `deliveries.outcome` (schema.sql). */
export const outcomes = ["executed", "replayed", "busy", "refused", "failed"] as const;

/** One of {@link outcomes}. */
export type Outcome = (typeof outcomes)[number];

/** A row of the table `deliveries`. */
export interface DeliveryRow {
  readonly id: number;
  readonly at: number;
  readonly provider: string;
  readonly delivery: string | null;
  readonly event: string | null;
  readonly entity: string | null;
  readonly outcome: Outcome;
  readonly status: number;
  readonly fence: number | null;
  readonly requests: number;
  readonly commands: number;
  readonly ms: number;
}

/** A row of the table `entities`. */
export interface EntityRow {
  readonly entity: string;
  readonly events: number;
  readonly last_event: string;
  readonly last_delivery: string;
  readonly updated_at: number;
  readonly fence: number;
}

/** Senders with an example that a shell can run. */
const examples = {
  github: { title: "GitHub", command: githubCommand },
  standardWebhooks: { title: "Standard Webhooks", command: standardWebhooksCommand },
  stripe: { title: "Stripe", command: stripeCommand },
} as const;

const exampleNames = Object.keys(examples) as (keyof typeof examples)[];

/** The data that {@link page} shows. */
export interface PageData {
  /** The complete URLs that the configured senders send to; part of the commands to copy. */
  readonly urls: Readonly<Partial<Record<keyof typeof examples, string>>>;
  /** Deliveries by outcome, since counting began; an absent outcome counts 0. */
  readonly counts: Readonly<Partial<Record<Outcome, number>>>;
  /** Effects ever performed, and deliveries with more than one effect, of which there must be 0. */
  readonly effects: { readonly performed: number; readonly repeated: number };
  /** The last 50, newest first. */
  readonly deliveries: readonly DeliveryRow[];
  /** Those that changed last, newest first. */
  readonly entities: readonly EntityRow[];
}

/**
 * Renders the page of `GET /` as an HTML document. It needs no script, and its policy forbids scripts. Everything in
 * `data` is escaped.
 *
 * @example
 * return new Response(page(data), { headers: { "content-type": "text/html; charset=utf-8" } });
 */
export function page(data: PageData): string {
  const { performed, repeated } = data.effects;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="content-security-policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>redlock-edge: deliveries</title>
<style>${new Markup(css)}</style>
</head>
<body>
<header>
<h1>redlock-edge</h1>
<p>Verified webhook → idempotent run → lock on the entity → fenced write to D1.</p>
</header>
<main>
<section aria-label="Counts">
<dl class="counts">
${outcomes.map((outcome) => countTile(outcome, data.counts[outcome] ?? 0, outcome))}
${countTile("effects", performed, "")}
${countTile("repeated effects", repeated, repeated > 0 ? "failed" : "")}
</dl>
</section>
<section>
<h2>Latest deliveries</h2>
${data.deliveries.length === 0 ? html`<p>None yet. Send one with a command from below.</p>` : deliveryTable(data.deliveries)}
</section>
<section>
<h2>Entities</h2>
${data.entities.length === 0 ? html`<p>None yet.</p>` : entityTable(data.entities)}
</section>
<section>
<h2>Send a signed webhook</h2>
<p>One click selects a whole example. Run its last command, the curl, once more to send a duplicate.</p>
${exampleNames.flatMap((name) => exampleOf(name, data.urls[name]))}
</section>
</main>
</body>
</html>
`.text;
}

function countTile(label: string, count: number, kind: Outcome | ""): Markup {
  return html`<div class="count ${kind}"><dt>${label}</dt><dd>${grouped(count)}</dd></div>`;
}

function deliveryTable(rows: readonly DeliveryRow[]): Markup {
  return html`<div class="scroll" role="region" aria-label="Latest deliveries" tabindex="0"><table>
<thead><tr><th scope="col">Time (UTC)</th><th scope="col">Outcome</th><th scope="col" class="number">Status</th>
<th scope="col">Provider</th><th scope="col">Event</th><th scope="col">Entity</th><th scope="col">Delivery</th>
<th scope="col" class="number">Fence</th><th scope="col" class="number" title="HTTP requests to Redis">Requests</th>
<th scope="col" class="number" title="Redis commands billed">Commands</th><th scope="col" class="number">ms</th></tr></thead>
<tbody>
${rows.map(
  (row) => html`<tr><td>${time(row.at)}</td>
<td><span class="outcome ${row.outcome}">${row.outcome}</span></td><td class="number">${row.status}</td>
<td>${row.provider}</td><td class="text">${row.event}</td><td class="text">${row.entity}</td><td class="text id">${row.delivery}</td>
<td class="number">${row.fence}</td><td class="number">${row.requests}</td><td class="number">${row.commands}</td>
<td class="number">${grouped(row.ms)}</td></tr>`,
)}</tbody>
</table></div>`;
}

function entityTable(rows: readonly EntityRow[]): Markup {
  return html`<div class="scroll" role="region" aria-label="Entities" tabindex="0"><table>
<thead><tr><th scope="col">Entity</th><th scope="col" class="number">Events</th><th scope="col" class="number">Fence</th>
<th scope="col">Last event</th><th scope="col">Last delivery</th><th scope="col">Updated (UTC)</th></tr></thead>
<tbody>
${rows.map(
  (row) => html`<tr><td class="text">${row.entity}</td><td class="number">${grouped(row.events)}</td>
<td class="number">${row.fence}</td><td class="text">${row.last_event}</td><td class="text id">${row.last_delivery}</td>
<td>${time(row.updated_at)}</td></tr>`,
)}</tbody>
</table></div>`;
}

function exampleOf(name: keyof typeof examples, url: string | undefined): readonly Markup[] {
  if (url === undefined) return [];
  const { title, command } = examples[name];
  return [html`<h3>${title}</h3>`, html`<pre tabindex="0"><code>${command(url)}</code></pre>`];
}

/**
 * Shell commands that send a webhook as GitHub does. They read the secret from `GITHUB_WEBHOOK_SECRET`.
 *
 * @example
 * console.log(githubCommand("http://127.0.0.1:8787/webhooks/github"));
 */
export function githubCommand(url: string): string {
  return `body='{"action":"opened","issue":{"number":42},"repository":{"full_name":"octo/demo"}}'
id=$(openssl rand -hex 16)
signature=$(printf %s "$body" | openssl dgst -sha256 -hmac "$GITHUB_WEBHOOK_SECRET" | sed 's/^.* //')
curl -i ${shellQuoted(url)} -H 'content-type: application/json' \\
  -H 'x-github-event: issues' -H "x-github-delivery: $id" \\
  -H "x-hub-signature-256: sha256=$signature" --data-binary "$body"`;
}

/**
 * Shell commands that send a Standard Webhook. They read the secret from `STANDARD_WEBHOOKS_SECRET`.
 *
 * @example
 * console.log(standardWebhooksCommand("http://127.0.0.1:8787/webhooks/standard"));
 */
export function standardWebhooksCommand(url: string): string {
  // openssl gets the key as hex, because its bytes may include zeros, which no argument can contain.
  return `body='{"type":"invoice.paid","data":{"id":"inv_42"}}'
id=msg_$(openssl rand -hex 16)
timestamp=$(date +%s)
key=$(printf %s "\${STANDARD_WEBHOOKS_SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \\n')
signature=$(printf %s "$id.$timestamp.$body" | \\
  openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A)
curl -i ${shellQuoted(url)} -H 'content-type: application/json' \\
  -H "webhook-id: $id" -H "webhook-timestamp: $timestamp" \\
  -H "webhook-signature: v1,$signature" --data-binary "$body"`;
}

/**
 * Shell commands that send an event as Stripe does. They read the secret from `STRIPE_WEBHOOK_SECRET`.
 *
 * @example
 * console.log(stripeCommand("http://127.0.0.1:8787/webhooks/stripe"));
 */
export function stripeCommand(url: string): string {
  return `id=evt_$(openssl rand -hex 12)
body='{"id":"'$id'","type":"payment_intent.succeeded","data":{"object":{"id":"pi_42"}}}'
timestamp=$(date +%s)
signature=$(printf %s "$timestamp.$body" | openssl dgst -sha256 -hmac "$STRIPE_WEBHOOK_SECRET" | sed 's/^.* //')
curl -i ${shellQuoted(url)} -H 'content-type: application/json' \\
  -H "stripe-signature: t=$timestamp,v1=$signature" --data-binary "$body"`;
}

/** Quotes one word for a POSIX shell. A URL may contain `$` and `'`, and users run this text. */
function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function grouped(count: number): string {
  return count.toLocaleString("en", { useGrouping: true });
}

function time(at: number): string {
  const date = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium", timeZone: "UTC" });
  return date.format(at);
}

/** Text that is HTML already. Made only by {@link html} and for the style sheet. */
class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** Inserts values into HTML. Each is escaped (also for quoted attributes) unless it is markup itself. */
function html(
  strings: TemplateStringsArray,
  ...values: readonly (string | number | null | Markup | readonly Markup[])[]
): Markup {
  const parts = values.map((value) => {
    if (value === null) return "";
    if (value instanceof Markup) return value.text;
    if (typeof value === "object") return value.map((markup) => markup.text).join("\n");
    return escaped(String(value));
  });
  return new Markup(String.raw(strings, ...parts));
}

const entityOf: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entityOf[character] ?? "");
}

const css = `
:root {
  color-scheme: light dark;
  --back: #fbfbfa; --panel: #fff; --line: #e3e3df; --text: #1d1f21; --quiet: #63676b;
  --executed: #17703f; --replayed: #1f5fbf; --busy: #8a5a00; --refused: #6a4bb0; --failed: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #15171a; --panel: #1c1f23; --line: #31363c; --text: #e6e7e8; --quiet: #9aa0a6;
    --executed: #6fd39a; --replayed: #86b4ff; --busy: #f0bf5e; --refused: #bda4f7; --failed: #ff8f86;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 92rem; padding: 1.5rem; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.5rem; }
h2 { margin: 2rem 0 .5rem; font-size: 1.1rem; }
h3 { margin: 1rem 0 .25rem; font-size: .95rem; }
p { margin: .25rem 0; color: var(--quiet); }
.counts { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.5rem, 1fr)); gap: .75rem; margin: 1.25rem 0 0; }
.count { padding: .6rem .9rem; background: var(--panel); border: 1px solid var(--line); border-radius: 8px;
  --kind: var(--text); }
.count dt { color: var(--quiet); font-size: .85rem; }
.count dd { margin: 0; color: var(--kind); font-size: 1.6rem; font-weight: 600; line-height: 1.25; }
.executed { --kind: var(--executed); } .replayed { --kind: var(--replayed); } .busy { --kind: var(--busy); }
.refused { --kind: var(--refused); } .failed { --kind: var(--failed); }
.scroll { max-height: 34rem; overflow: auto; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; }
table { width: 100%; border-collapse: separate; border-spacing: 0; font-size: .85rem; }
th, td { padding: .4rem .55rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top;
  white-space: nowrap; unicode-bidi: isolate; }
th { position: sticky; top: 0; background: var(--panel); color: var(--quiet); font-weight: 500; }
tbody tr:last-child td { border-bottom: 0; }
.text { min-width: 8rem; white-space: normal; overflow-wrap: anywhere; }
.text.id { min-width: 13rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.id, code { font-family: ui-monospace, monospace; font-size: .8rem; }
.outcome { padding: .05rem .5rem; border: 1px solid var(--kind); border-radius: 1rem; color: var(--kind); }
pre { margin: 0; padding: .8rem 1rem; overflow-x: auto; background: var(--panel); border: 1px solid var(--line);
  border-radius: 8px; }
code { user-select: all; }
`;
