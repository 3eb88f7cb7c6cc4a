import { html } from "hono/html";
import type { Health } from "../health.ts";
import type { DeliveryRow, Outcome } from "./journal.ts";

/** What the page shows. */
export interface PageData {
  readonly health: Health;
  /** Newest first. */
  readonly deliveries: readonly DeliveryRow[];
  /** ms since 1970. */
  readonly now: number;
}

/** A piece of the page; `html` escapes what is inserted. */
type Markup = ReturnType<typeof html>;

/**
 * Renders the page as an HTML document. Everything in `data` is escaped.
 *
 * @example
 * return c.html(page({ health, deliveries, now: Date.now() }));
 */
export function page({ health, deliveries, now }: PageData): Markup {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>redlock-edge: webhooks that act once</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/page.css">
</head>
<body>
<header>
<h1>Webhooks that act once</h1>
<p>As of ${time(now)}. <a href="/">Refresh</a></p>
</header>
<main>
<h2>Endpoints and database</h2>
<p>${health.ok ? "Webhooks are handled." : "No webhook is handled: each sender is asked to try again."}</p>
<ul class="parts">${health.parts.map(partItem)}</ul>
<h2>Latest deliveries</h2>
${deliveries.length === 0 ? html`<p>None yet.</p>` : deliveryTable(deliveries)}
</main>
</body>
</html>
`;
}

function partItem({ name, problem }: Health["parts"][number]): Markup {
  const kind = problem === undefined ? "executed" : "retry";
  return html`<li class="${kind}">${name} ${problem === undefined ? "answers" : `fails: ${problem}`}</li>`;
}

function deliveryTable(deliveries: readonly DeliveryRow[]): Markup {
  return html`<table>
<thead><tr><th scope="col">Event</th><th scope="col">Outcome</th><th scope="col">Acted</th></tr></thead>
<tbody>${deliveries.map(deliveryRow)}</tbody>
</table>`;
}

/** A sign besides the word, so that nobody depends on the colour. */
const signs: Readonly<Record<Outcome, string>> = { executed: "✓", replayed: "↻", refused: "⊘", retry: "…" };

function deliveryRow(row: DeliveryRow): Markup {
  const { outcome, status, reason, acted } = row;
  return html`<tr>
<td>${row.event === null ? `in the name of ${row.sender}` : html`<b>${row.event}</b> of ${row.entity}`}
<small>${time(row.at)}${row.delivery_key === null ? "" : ` · ${row.delivery_key}`}</small></td>
<td class="${outcome}">${signs[outcome]}&nbsp;${outcome}<small>${status}${reason === null ? "" : ` · ${reason}`}</small></td>
<td class="${acted > 1 ? "wrong" : ""}">${acted}×</td>
</tr>`;
}

function time(at: number): Markup {
  const text = new Date(at).toISOString();
  return html`<time datetime="${text}">${text.slice(0, 10)} ${text.slice(11, 19)} UTC</time>`;
}
