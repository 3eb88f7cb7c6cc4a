import { html } from "hono/html";
import type { Health } from "../health.ts";
import type { EventRow, Outcome } from "./journal.ts";

/** What the page shows. */
export interface PageData {
  readonly health: Health;
  /** The one that was delivered last first. */
  readonly events: readonly EventRow[];
  /** ms since 1970. */
  readonly now: number;
}

/** A piece of the page; `html` escapes what is inserted. */
type Markup = ReturnType<typeof html>;

/**
 * Renders the page as an HTML document. Everything in `data` is escaped.
 *
 * @example
 * return c.html(page({ health, events, now: Date.now() }));
 */
export function page({ health, events, now }: PageData): Markup {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="10">
<meta name="color-scheme" content="light dark">
<title>redlock-edge: webhooks that act once</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/page.css">
</head>
<body>
<header>
<h1>Webhooks that act once</h1>
<p>Updated every 10 seconds.</p>
</header>
<main>
<h2>Endpoints and database</h2>
<p>${health.ok ? "Webhooks are handled." : "No webhook is handled: each sender is asked to try again."}</p>
<ul class="parts">${health.parts.map(partItem)}</ul>
<h2>Latest events</h2>
${events.length === 0 ? html`<p>None yet.</p>` : html`<ul class="events">${events.map((row) => eventItem(row, now))}</ul>`}
</main>
</body>
</html>
`;
}

function partItem({ name, problem }: Health["parts"][number]): Markup {
  const kind = problem === undefined ? "executed" : "retry";
  return html`<li class="${kind}">${name} ${problem === undefined ? "answers" : `fails: ${problem}`}</li>`;
}

/** A sign besides the words, so that nobody depends on the colour. */
const signs: Readonly<Record<Outcome, string>> = { executed: "✓", replayed: "✓", refused: "⊘", retry: "…" };

function eventItem({ event, ...row }: EventRow, now: number): Markup {
  const { outcome, delivered, handled, delivery_key: key } = row;
  const kind = handled > 1 ? "wrong" : outcome;
  return html`<li>
<span class="sign ${kind}">${signs[outcome]}</span>
<div><b>${event ?? `in the name of ${row.sender}`}</b>${event === null ? "" : ` of ${row.entity}`}, delivered ${times(delivered)},
<span class="${kind}">${handledText(row)}</span>
<small>${time(row.at, now)}${key === null ? "" : ` · ${key}`}</small></div>
</li>`;
}

const times = (count: number): string => (count === 1 ? "once" : `${count} times`);

function handledText({ outcome, handled, reason, status }: Omit<EventRow, "event">): string {
  if (handled > 0) return `handled ${times(handled)}`;
  const why = reason ?? `HTTP ${status}`;
  return outcome === "refused" ? `refused: ${why}` : `not handled yet: ${why}`;
}

/** How long ago something was; the exact time is shown if it is pointed at. */
function time(at: number, now: number): Markup {
  const text = new Date(at).toISOString();
  const seconds = Math.max(0, Math.floor((now - at) / 1_000));
  const [count, unit] =
    seconds < 60 ? [seconds, "s"] : seconds < 3_600 ? [seconds / 60, "min"] : [seconds / 3_600, "h"];
  return html`<time datetime="${text}" title="${text}">${seconds < 2 ? "now" : `${Math.floor(count)} ${unit} ago`}</time>`;
}
