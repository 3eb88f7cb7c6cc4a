import { type EndpointFailure, failureText } from "../failure.ts";
import type { Health } from "../health-report.ts";
import { type DeliveryRow, type EntityRow, type JournalVote, type Outcome, outcomes } from "../rows.ts";
import { type ExampleUrls, examples } from "./commands.ts";
import { type DeliveryGroup, groupsOf, summaryOf } from "./groups.ts";
import { documentHead, html, type Markup } from "./html.ts";

/** What the page shows of the database. */
export interface JournalData {
  /** Deliveries by outcome, since counting began; an absent outcome counts 0. */
  readonly counts: Readonly<Partial<Record<Outcome, number>>>;
  /** Effects ever performed, and deliveries with more than one effect, of which there must be 0. */
  readonly effects: { readonly performed: number; readonly repeated: number };
  /** The newest, newest first. */
  readonly deliveries: readonly DeliveryRow[];
  /** The first rows of the deliveries among them. */
  readonly firsts: readonly DeliveryRow[];
  /** Those that changed last, newest first. */
  readonly entities: readonly EntityRow[];
}

/** The data that {@link page} shows. */
export interface PageData extends JournalData {
  /** The complete URLs that the configured senders send to; part of the commands to copy. */
  readonly urls: ExampleUrls;
  /** Undefined while the endpoints are still being asked; a text says why nobody can ask them. */
  readonly health: Health | string | undefined;
  /** Names this state of the page: the script sends it back, to learn whether there is a newer one. */
  readonly version: string;
  /** Buttons; absent in the deployed Worker. */
  readonly tryIt?: Markup | undefined;
  /** Whether the reader has signed in with this browser. */
  readonly canSignOut?: boolean;
}

/**
 * Renders the page of `GET /` as an HTML document. It says everything without a script; the script (live.client.js)
 * replaces the elements with `data-part` by those of a newer page. Everything in `data` is escaped.
 *
 * @example
 * return new Response(page(data), { headers: { "content-type": "text/html; charset=utf-8" } });
 */
export function page(data: PageData): string {
  const groups = groupsOf(data.deliveries, data.firsts);
  return html`${documentHead("redlock-edge: webhooks that take effect once", html`<script type="module" src="/live.js"></script>`)}
<body data-version="${data.version}">
<header>
<p class="brand">redlock-edge</p>
<h1>Webhooks that take effect once</h1>
<p class="lead">This Worker receives signed webhooks. Each takes effect <strong>once</strong>, however often it is sent,
and also while some of the Redis endpoints fail.</p>
<ol class="steps">
<li>Verify the signature</li>
<li>Claim the delivery at a quorum of Redis endpoints</li>
<li>Lock what it is about</li>
<li>Write to the database, under a fence</li>
</ol>
<p id="live" class="live"><span id="live-state">Reload the page to see what is new.</span>
<button type="button" id="live-switch" hidden>Pause</button></p>
</header>
<main>
<div class="now">
${tryItSection(data.tryIt)}
<section aria-labelledby="latest-title">
<h2 id="latest-title">What just happened</h2>
<div id="latest" data-part role="status">${latest(groups[0])}</div>
</section>
</div>
<section aria-labelledby="answering-title">
<h2 id="answering-title">Endpoints and database</h2>
<div id="answering" data-part>${answering(data.health)}</div>
</section>
<section aria-labelledby="counts-title">
<h2 id="counts-title">Since the beginning</h2>
<dl id="counts" data-part class="counts">${countTiles(data)}</dl>
</section>
<section aria-labelledby="deliveries-title">
<h2 id="deliveries-title">Latest deliveries</h2>
<div id="deliveries" data-part>${deliveryList(groups)}</div>
</section>
<section aria-labelledby="entities-title">
<h2 id="entities-title">What they were about</h2>
<div id="entities" data-part>${entityTable(data.entities)}</div>
</section>
${commandSection(data.urls)}
</main>
<footer><p>For programs: <a href="/deliveries">deliveries</a>, <a href="/healthz">health</a>.</p>
${data.canSignOut ? html`<form method="post" action="/sign-out"><button id="sign-out">Sign out</button></form>` : undefined}</footer>
</body>
</html>
`.text;
}

function tryItSection(buttons: Markup | undefined): Markup {
  return html`<section aria-labelledby="try-title">
<h2 id="try-title">Try it</h2>
${
  buttons
    ? html`<div id="try" data-part>${buttons}</div>`
    : html`<p>Send a webhook with <a href="#commands">a command from below</a>, and then the same one again: the page shows
it as a copy that had no second effect.</p>`
}
</section>`;
}

/** A sign besides the word, so that nobody depends on the colour. */
const signs: Readonly<Record<Outcome, string>> = {
  executed: "✓",
  replayed: "↻",
  busy: "…",
  refused: "⊘",
  failed: "✕",
};

function pill(outcome: Outcome): Markup {
  return html`<span class="outcome ${outcome}"><span aria-hidden="true">${signs[outcome]}</span> ${outcome}</span>`;
}

function latest(group: DeliveryGroup | undefined): Markup {
  if (!group) return html`<p>Nothing yet. The next webhook appears here.</p>`;
  const { outcome, text, copies } = summaryOf(group);
  const { at } = group.copies.at(-1) ?? group.first;
  return html`<p class="title">${pill(outcome)} ${titleOf(group.first)}</p>
<p>${text}</p>
${copies === "" ? undefined : html`<p>${copies}</p>`}
<p class="quiet">At ${time(at)}.</p>`;
}

function titleOf({ event, entity, provider }: DeliveryRow): Markup {
  // Nothing in a refused delivery can be relied on, not even its sender.
  if (event === null) return html`A delivery in the name of ${provider}`;
  return html`<b>${event}</b> of <span class="name">${entity}</span>`;
}

function answering(health: PageData["health"]): Markup {
  if (health === undefined) return html`<p>The endpoints are being asked.</p>`;
  if (typeof health === "string") return html`<p>Nobody can be asked: ${health}.</p>`;
  const { quorum, endpoints, database } = health;
  const enough = quorum.answered >= quorum.needed;
  return html`<ul class="answering">
${endpoints.map(({ name, answered, failure }) => answerItem(answered, name, failure && failureText(failure)))}
${answerItem(database.answered, "database", database.failure?.kind === "timeout" ? "no answer in time" : "an error")}
</ul>
<p>${quorum.answered} of ${endpoints.length} Redis endpoints answer; ${quorum.needed} are needed.
${
  enough && database.answered
    ? "Webhooks are handled."
    : "No webhook takes effect until they answer: each sender is told to try again."
}</p>`;
}

function answerItem(answered: boolean, name: string, failure: string | undefined): Markup {
  return html`<li class="${answered ? "executed" : "failed"}"><span class="sign" aria-hidden="true">${answered ? "✓" : "✕"}</span>
<span class="name">${name}</span> ${answered ? "answers" : `does not answer: ${failure ?? "an error"}`}</li>`;
}

const meanings: Readonly<Record<Outcome, string>> = {
  executed: "took effect",
  replayed: "got the stored answer",
  busy: "came too early",
  refused: "not genuine",
  failed: "no quorum, or an error",
};

function countTiles({ counts, effects: { performed, repeated } }: JournalData): readonly Markup[] {
  return [
    ...outcomes.map((outcome) => countTile(outcome, counts[outcome] ?? 0, meanings[outcome], outcome)),
    countTile("effects", performed, "in the database"),
    countTile("repeated effects", repeated, "must be 0", repeated > 0 ? "failed" : ""),
  ];
}

function countTile(label: string, count: number, meaning: string, kind: Outcome | "" = ""): Markup {
  // Without a colour as long as there is nothing to look at.
  return html`<div class="count ${count === 0 ? "" : kind}"><dt>${label}</dt><dd>${grouped(count)}</dd><dd class="meaning">${meaning}</dd></div>`;
}

function deliveryList(groups: readonly DeliveryGroup[]): Markup {
  if (groups.length === 0) return html`<p>None yet.</p>`;
  return html`<ol class="groups">${groups.map(groupItem)}</ol>`;
}

function groupItem(group: DeliveryGroup): Markup {
  const { key, first, copies } = group;
  const newest = copies.at(-1) ?? first;
  const summary = summaryOf(group);
  return html`<li class="group ${summary.outcome}" data-key="${key}">
<div class="head"><h3>${pill(summary.outcome)} ${titleOf(first)}</h3>${time(newest.at)}</div>
<p>${summary.text} ${summary.copies}</p>
${summary.outcome === "failed" && newest.votes ? voteList(newest.votes) : undefined}
<p class="quiet">${sourceOf(first)}${copies.length === 0 ? costOf(first) : undefined}</p>
${copies.length === 0 ? undefined : requestTable(group)}
</li>`;
}

function sourceOf({ delivery, provider }: DeliveryRow): Markup | undefined {
  if (delivery === null) return undefined;
  return html`${provider}, delivery <span class="name id">${delivery}</span><br>`;
}

function costOf({ status, ms, requests, commands }: DeliveryRow): Markup {
  return html`answered ${status} in ${grouped(ms)} ms, with ${requests} requests and ${commands} commands to Redis`;
}

const voteTexts: Readonly<Record<JournalVote["outcome"], string>> = {
  granted: "granted",
  held: "held by someone else",
  lost: "lost",
  error: "failed",
  pending: "not answered yet",
};

function voteList(votes: readonly JournalVote[]): Markup {
  return html`<ul class="votes" aria-label="Votes">${votes.map(
    ({ endpoint, outcome, failure }) =>
      html`<li class="${outcome === "error" ? "failed" : ""}"><span class="name">${endpoint}</span>: ${voteText(outcome, failure)}</li>`,
  )}</ul>`;
}

function voteText(outcome: JournalVote["outcome"], failure: EndpointFailure | undefined): string {
  return failure ? failureText(failure) : voteTexts[outcome];
}

function requestTable({ key, first, copies, hasGap }: DeliveryGroup): Markup {
  return html`<details data-key="${key}">
<summary>${copies.length + 1} requests: the first and ${copies.length === 1 ? "1 copy" : `${copies.length} copies`}</summary>
<table>
<thead><tr><th scope="col">Time (UTC)</th><th scope="col">Outcome</th><th scope="col" class="number">Status</th>
<th scope="col" class="number">Requests / commands to Redis</th><th scope="col" class="number">ms</th></tr></thead>
<tbody>
${requestRow(first)}
${hasGap ? html`<tr><td colspan="5" class="why">There may be more copies here: the page reads the newest rows and each first one.</td></tr>` : undefined}
${copies.map(requestRow)}</tbody>
</table>
</details>`;
}

function requestRow(row: DeliveryRow): Markup {
  const why = row.reason !== null || row.votes !== null;
  return html`<tr><td>${clock(row.at)}</td><td>${pill(row.outcome)}</td><td class="number">${row.status}</td>
<td class="number">${row.requests} / ${row.commands}</td><td class="number">${grouped(row.ms)}</td></tr>
${why ? html`<tr><td colspan="5" class="why">${row.reason}${row.votes ? voteList(row.votes) : undefined}</td></tr>` : undefined}`;
}

function entityTable(rows: readonly EntityRow[]): Markup {
  if (rows.length === 0) return html`<p>None yet.</p>`;
  return html`<table>
<thead><tr><th scope="col">Entity, with its last event</th><th scope="col" class="number">Events</th>
<th scope="col" class="number"><abbr title="The fencing token of the last write: a late writer has a lower one">Fence</abbr></th></tr></thead>
<tbody>
${rows.map(
  (
    row,
  ) => html`<tr><td class="text"><span class="name">${row.entity}</span><br><span class="quiet">${row.last_event}, ${time(row.updated_at)}</span></td>
<td class="number">${grouped(row.events)}</td><td class="number">${row.fence}</td></tr>`,
)}</tbody>
</table>`;
}

function commandSection(urls: ExampleUrls): Markup {
  return html`<section id="commands" aria-labelledby="commands-title">
<h2 id="commands-title">Send a signed webhook from a shell</h2>
<p>One click selects a whole example. Run its last command, the curl, once more to send a copy.</p>
${examples(urls).map(
  ({ title, command }) =>
    html`<details><summary>${title}</summary><pre tabindex="0"><code>${command}</code></pre></details>`,
)}
</section>`;
}

function grouped(count: number): string {
  return count.toLocaleString("en", { useGrouping: true });
}

function time(at: number): Markup {
  const text = new Date(at).toISOString();
  return html`<time datetime="${text}">${text.slice(0, 10)} ${text.slice(11, 19)} UTC</time>`;
}

/** The time of day. */
function clock(at: number): Markup {
  const text = new Date(at).toISOString();
  return html`<time datetime="${text}">${text.slice(11, 19)}</time>`;
}
