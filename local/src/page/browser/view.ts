import { html, nothing, type TemplateResult } from "lit-html";
import type { EndpointState, LockRow, PageState, RecordRow, RequestRow, Share } from "../state.ts";
import { type FaultSwitch, isSame, switches } from "./switches.ts";
import { ago, clock, left, matching, recordWords, sharesText, shareText, short } from "./words.ts";

// What the page shows of a state. It is drawn anew with each state; lit-html changes only what differs.

/** What the page can ask for, with the words of an error if there is one. */
export interface PageActions {
  readonly failure: string;
  readonly search: string;
  onSearch(text: string): void;
  /** Sends a request about an endpoint: `stop`, or rules for `faults`. */
  send(endpoint: number, action: string, rules?: unknown): void;
}

/** The whole page. */
export function view(state: PageState, page: PageActions): TemplateResult {
  const onInput = ({ target }: InputEvent) => page.onSearch((target as HTMLInputElement).value.trim());
  return html`
    <div class="page">
      ${page.failure && html`<p class="bad" id="failure">${page.failure}</p>`}
      <div class="cards">${state.endpoints.map((endpoint, index) => card(endpoint, index + 1, page))}</div>
      <input type="search" aria-label="Search" @input=${onInput}
        placeholder="Search: a resource, a client, a result">
      ${locks(state, page)} ${records(state, page)} ${requests(state, page)}
    </div>`;
}

const titles: Readonly<Record<string, string>> = {
  Stop: "As a crash does: connections break, and the Redis that was started for it is killed",
  "Start empty": "As a server without persistence after a crash: its data are lost",
};

/** One endpoint, with its faults. */
function card(state: EndpointState, number: number, page: PageActions): TemplateResult {
  const { name, url, status, faults } = state;
  const shown = status === "up" && faults.length > 0 ? "faulty" : status;
  const button = (text: string, action: string) => html`
    <button type="button" title=${titles[text] ?? nothing} @click=${() => page.send(number, action)}>${text}</button>`;
  return html`
    <article class="card" aria-label=${name} data-status=${shown}>
      <div class="card-head">
        <h3>${name}</h3>
        <span class="badge ${shown}">${statusText(state)}</span>
        <div class="actions">
          ${status === "stopped" ? button("Start", "start") : button("Stop", "stop")}
          ${status === "stopped" && state.canForget ? button("Start empty", "start-empty") : ""}
        </div>
      </div>
      <code class="soft">${url}</code>
      <div class="counts">
        <span><b>${state.requests}</b> requests</span>
        <span><b>${state.billed}</b> billed commands</span>
      </div>
      <div class="soft legend">Faults: switch one on, and see what your program does</div>
      <div class="switches">${switches.map((each) => toggle(each, state, number, page))}</div>
    </article>`;
}

function toggle(
  { label, about, rule }: FaultSwitch,
  { faults }: EndpointState,
  number: number,
  page: PageActions,
): TemplateResult {
  const rest = faults.filter((each) => !isSame(each, rule));
  const on = rest.length < faults.length;
  const onClick = () => page.send(number, "faults", on ? rest : [...faults, rule]);
  return html`
    <button type="button" role="switch" aria-checked=${on} aria-label=${label}
      title="${about} (${rule.fault})" @click=${onClick}>${label}</button>`;
}

function statusText({ status, faults }: EndpointState): string {
  if (status === "stopped") return "stopped";
  if (status === "silent") return "its Redis does not answer";
  return faults.length > 0 ? `up, ${faults.length} fault${faults.length === 1 ? "" : "s"}` : "up";
}

/** A column of a table. `kind`: `name`, `number` or none. */
type Column<Row> = readonly [label: string, kind: string, cell: (row: Row) => unknown];

/** A section with the rows that fit a search, as far as they are drawn: a long page is slow. */
function listing<Row>(
  title: string,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { most, fits, none }: { readonly most: number; fits(row: Row): boolean; readonly none: unknown },
): TemplateResult {
  const fitting = rows.filter(fits);
  const shown = fitting.slice(0, most);
  const count = fitting.length === rows.length ? "" : `${fitting.length} of `;
  const drawn = shown.length < fitting.length ? `, the first ${shown.length} are shown` : "";
  const note = `${count}${rows.length}${count && " match"}${drawn}`;
  const head = html`<tr>${columns.map(([label, kind]) => html`<th class=${kind}>${label}</th>`)}</tr>`;
  const body = shown.map(
    (row) => html`
      <tr>${columns.map(([label, kind, cell]) => html`<td class=${kind} data-label=${label}>${cell(row)}</td>`)}</tr>`,
  );
  return html`
    <section>
      <h2>${title} <small>${rows.length > 0 ? note : ""}</small></h2>
      ${rows.length > 0 ? html`<table><thead>${head}</thead><tbody>${body}</tbody></table>` : html`<div class="none">${none}</div>`}
    </section>`;
}

const name = (text: string) => html`<span title=${text}>${short(text)}</span>`;
const colored = (kind: string, text: string) => html`<span class=${kind}>${text}</span>`;

function shares(list: readonly Share[], { endpoints }: PageState): TemplateResult {
  const texts = list.map((share, index) => shareText(share, endpoints[index]?.name ?? ""));
  const marks = list.map((share, index) => html`<span class="share ${share}" title=${texts[index]}></span>`);
  return html`<span class="shares" role="img" aria-label=${texts.join(", ")}>${marks}</span>`;
}

const example = `import { endpointsFromEnv, Redlock } from "redlock-edge";
const redlock = new Redlock({ endpoints: endpointsFromEnv(process.env) });
await redlock.using("invoice:42", { ttl: 30_000, fencing: true }, async () => { … });`;

/** What is held now. */
function locks(state: PageState, { search }: PageActions): TemplateResult {
  const columns: Column<LockRow>[] = [
    [
      "resource",
      "name",
      ({ resource, note }) => name(note ? `${resource} ${JSON.stringify(note)}` : resource),
    ],
    ["kind", "", ({ kind }) => kind],
    ["holder", "", ({ holder, client }) => html`${client} <code class="soft">${holder}</code>`],
    ["fence", "number", ({ fence = "–" }) => fence],
    ["remaining", "number", ({ until }) => left(until - state.now)],
    [
      "endpoints",
      "",
      (row) => html`${shares(row.shares, state)}${colored(row.held ? "" : "warn", ` ${sharesText(row)}`)}`,
    ],
  ];
  const fits = ({ resource, kind, holder, note, client, fence }: LockRow) =>
    matching([resource, kind, holder, note, client, fence].join(" "), search);
  const none = html`Nothing is held. Give your program the variables that the command has printed, and run it:
    <pre><code>${example}</code></pre>`;
  return listing("Held now", columns, state.locks, { most: 50, fits, none });
}

const recordKinds = { complete: "good", pending: "warn", corrupt: "bad", unfinished: "bad" };

/** The keys of idempotent runs. */
function records(state: PageState, { search }: PageActions): TemplateResult {
  const { now } = state;
  const stateText = (row: RecordRow) =>
    `${recordWords[row.state]}${row.replays > 0 ? `, replayed ${row.replays}×` : ""}`;
  const columns: Column<RecordRow>[] = [
    ["key (hash)", "name", ({ key }) => key],
    ["state", "", (row) => colored(recordKinds[row.state], stateText(row))],
    ["unfinished runs", "number", ({ attempts = "–" }) => attempts],
    ["since", "number", ({ since }) => (since === undefined ? "–" : ago(now - since))],
    ["kept for", "number", ({ until }) => left(until - now)],
    ["endpoints", "", (row) => html`${shares(row.shares, state)} ${sharesText({ ...row, held: true })}`],
  ];
  const fits = (row: RecordRow) => matching(`${row.key} ${stateText(row)}`, search);
  const none = "No idempotent run has left a record yet.";
  return listing("Idempotent runs", columns, state.records, { most: 50, fits, none });
}

/** The latest requests. */
function requests(state: PageState, { search }: PageActions): TemplateResult {
  const kindOf = ({ result, failed }: RequestRow) =>
    failed ? "bad" : /^(held|gone|waiting|failed)/.test(result) ? "warn" : "";
  const columns: Column<RequestRow>[] = [
    ["time", "", ({ at }) => clock(at)],
    ["client", "", ({ client }) => client],
    ["operation", "", ({ operation }) => operation],
    ["resource", "name", ({ resource }) => name(resource)],
    ["result", "", (row) => colored(kindOf(row), row.result)],
    ["endpoints", "", ({ endpoints }) => endpoints.map((each) => each.replace("endpoint-", "")).join(", ")],
    ["took", "number", ({ ms }) => `${ms} ms`],
    ["billed", "number", ({ billed }) => billed],
  ];
  const fits = ({ client, endpoints, operation, resource, result }: RequestRow) =>
    matching([client, ...endpoints, operation, resource, result].join(" "), search);
  const none = "No request has arrived yet.";
  return listing("Latest requests", columns, state.requests, { most: 30, fits, none });
}
