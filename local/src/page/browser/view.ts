import { type Child, createElement as h } from "hono/jsx/dom";
import type { EndpointState, LockRow, PageState, RecordRow, RequestRow, Share } from "../state.ts";
import { type FaultSwitch, isSame, switches } from "./switches.ts";
import { ago, clock, left, matching, recordWords, sharesText, shareText, short, wrongs } from "./words.ts";

// What the page shows of a state. It is drawn anew with each state; hono/jsx changes only what differs.

type Element = ReturnType<typeof h>;

/** What the page can ask for, with the words of an error if there is one. */
export interface PageActions {
  readonly failure: string;
  readonly search: string;
  /** The beginnings of hashes of keys that may be meant by the search. */
  readonly hashes: readonly string[];
  onSearch(text: string): void;
  /** Sends a request about an endpoint: `stop`, or rules for `faults`. */
  send(endpoint: number, action: string, method: "POST" | "PUT", rules?: unknown): void;
}

/** The whole page. */
export function view(state: PageState, page: PageActions): Element {
  const wrong = wrongs(state);
  return h(
    "div",
    { class: "page" },
    page.failure && h("p", { class: "bad", id: "failure" }, page.failure),
    wrong.length > 0 &&
      section("What is wrong", "", list(wrong.map((each) => ({ ...each, when: "" }))), "wrong"),
    justNow(state),
    h(
      "div",
      { class: "cards" },
      ...state.endpoints.map((endpoint, index) => card(endpoint, index + 1, page)),
    ),
    h("input", {
      type: "search",
      class: "search",
      "aria-label": "Search",
      placeholder: "Search: a resource, an idempotency key, a client, a result",
      onInput: ({ target }: { target: HTMLInputElement }) => page.onSearch(target.value.trim()),
    }),
    locks(state, page),
    records(state, page),
    requests(state, page),
  );
}

function section(title: string, note: string, body: Child, id?: string): Element {
  return h("section", id ? { id } : null, h("h2", null, title, " ", h("small", null, note)), body);
}

/** ms for which something happened just now. */
const recent = 60_000;

function justNow({ now, happenings }: PageState): Element {
  const found = happenings.filter(({ at }) => now - at < recent).slice(0, 8);
  const [last] = happenings;
  const none = last
    ? `Nothing in the last minute. ${ago(now - last.at)}: ${short(last.name)} ${last.text}`
    : "Nothing yet.";
  const lines = found.map(({ at, name, text }) => ({ when: ago(now - at), name, text }));
  return section("Just now", "", found.length > 0 ? list(lines) : h("div", { class: "none" }, none));
}

function list(
  lines: readonly { readonly when: string; readonly name: string; readonly text: string }[],
): Element {
  const items = lines
    .slice(0, 8)
    .map(({ when, name, text }) =>
      h("li", null, when && h("time", null, when), " ", h("b", { title: name }, short(name)), ` ${text}`),
    );
  const more = lines.length - items.length;
  return h("ul", { class: "happened" }, ...items, more > 0 && h("li", null, `and ${more} more`));
}

const titles: Readonly<Record<string, string>> = {
  Stop: "As a crash does: connections break, and the Redis that was started for it is killed",
  "Start empty": "As a server without persistence after a crash: its data are lost",
};

/** One endpoint, with its faults. */
function card(state: EndpointState, number: number, page: PageActions): Element {
  const { name, url, status, faults } = state;
  const isFaulty = status === "up" && faults.length > 0;
  const button = (text: string, action: string) =>
    h(
      "button",
      { type: "button", title: titles[text], onClick: () => page.send(number, action, "POST") },
      text,
    );
  const count = (total: number, unit: string) => h("span", null, h("b", null, `${total}`), ` ${unit}`);
  return h(
    "article",
    { class: "card", "aria-label": name, "data-status": isFaulty ? "faulty" : status },
    h(
      "div",
      { class: "card-head" },
      h("h3", null, name),
      h("span", { class: `badge ${isFaulty ? "faulty" : status}` }, statusText(state)),
      h(
        "div",
        { class: "actions" },
        status !== "stopped" && button("Stop", "stop"),
        status === "stopped" && button("Start", "start"),
        status === "stopped" && state.canForget && button("Start empty", "start-empty"),
      ),
    ),
    h("code", { class: "soft" }, url),
    h("div", { class: "counts" }, count(state.requests, "requests"), count(state.billed, "billed commands")),
    h("div", { class: "soft legend" }, "Faults: switch one on, and see what your program does"),
    h("div", { class: "switches" }, ...switches.map((each) => toggle(each, state, number, page))),
  );
}

function toggle(
  { label, about, rule }: FaultSwitch,
  { faults }: EndpointState,
  number: number,
  page: PageActions,
): Element {
  const rest = faults.filter((each) => !isSame(each, rule));
  const on = rest.length < faults.length;
  const onClick = () => page.send(number, "faults", "PUT", on ? rest : [...faults, rule]);
  const title = `${about} (${rule.fault})`;
  return h(
    "button",
    { type: "button", role: "switch", "aria-checked": `${on}`, "aria-label": label, title, onClick },
    label,
  );
}

function statusText({ status, faults }: EndpointState): string {
  if (status === "stopped") return "stopped";
  if (status === "silent") return "its Redis does not answer";
  return faults.length > 0 ? `up, ${faults.length} fault${faults.length === 1 ? "" : "s"}` : "up";
}

/** A column of a table. `kind`: `name`, `number` or none. */
interface Column<Row> {
  readonly label: string;
  readonly kind?: "name" | "number";
  cell(row: Row): Child;
}

/** A section with the rows that fit a search, as far as they are drawn: a long page is slow. */
function listing<Row>(
  title: string,
  columns: readonly Column<Row>[],
  {
    rows,
    most = 50,
    fits,
    none,
  }: {
    readonly rows: readonly Row[];
    readonly most?: number;
    fits(row: Row): boolean;
    readonly none: Child;
  },
): Element {
  if (rows.length === 0) return section(title, "", h("div", { class: "none" }, none));
  const fitting = rows.filter(fits);
  const shown = fitting.slice(0, most);
  const matches =
    fitting.length === rows.length ? `${rows.length}` : `${fitting.length} of ${rows.length} match`;
  const drawn = shown.length < fitting.length ? `, the first ${shown.length} are shown` : "";
  const head = columns.map(({ label, kind }) => h("th", { class: kind ?? "" }, label));
  const body = shown.map((row) =>
    h(
      "tr",
      null,
      ...columns.map(({ label, kind, cell }) =>
        h("td", { class: kind ?? "", "data-label": label }, cell(row)),
      ),
    ),
  );
  const table = h("table", null, h("thead", null, h("tr", null, ...head)), h("tbody", null, ...body));
  return section(title, matches + drawn, table);
}

const name = (text: string): Element => h("span", { title: text }, short(text));

function shares(list: readonly Share[], endpoints: PageState["endpoints"]): Element {
  const texts = list.map((share, index) => shareText(share, endpoints[index]?.name ?? ""));
  const marks = list.map((share, index) => h("span", { class: `share ${share}`, title: texts[index] }));
  return h("span", { class: "shares", role: "img", "aria-label": texts.join(", ") }, ...marks);
}

const example = `import { endpointsFromEnv, Redlock } from "redlock-edge";
const redlock = new Redlock({ endpoints: endpointsFromEnv(process.env) });
await redlock.using("invoice:42", { ttl: 30_000, fencing: true }, async () => { … });`;

/** What is held now. */
function locks({ now, locks: rows, endpoints }: PageState, { search }: PageActions): Element {
  const columns: Column<LockRow>[] = [
    {
      label: "resource",
      kind: "name",
      cell: ({ resource, note }) =>
        name(note === undefined ? resource : `${resource} ${JSON.stringify(note)}`),
    },
    { label: "kind", cell: ({ kind }) => kind },
    {
      label: "holder",
      cell: ({ holder, client = "" }) => h("span", null, `${client} `, h("code", { class: "soft" }, holder)),
    },
    { label: "fence", kind: "number", cell: ({ fence }) => (fence === undefined ? "–" : `${fence}`) },
    { label: "remaining", kind: "number", cell: ({ until }) => left(until - now) },
    {
      label: "endpoints",
      cell: (row) =>
        h("span", { class: row.held ? "" : "warn" }, shares(row.shares, endpoints), ` ${sharesText(row)}`),
    },
  ];
  const fits = ({ resource, kind, holder, note, client, fence }: LockRow) =>
    matching([resource, kind, holder, note, client, fence].join(" "), search);
  const none = h(
    "div",
    null,
    "Nothing is held. Give your program the variables that the command has printed, and run it:",
    h("pre", null, h("code", null, example)),
  );
  return listing("Held now", columns, { rows, fits, none });
}

/** The keys of idempotent runs. */
function records({ now, records: rows, endpoints }: PageState, { search, hashes }: PageActions): Element {
  const isMeant = ({ key }: RecordRow) => hashes.some((hash) => key.endsWith(hash));
  const columns: Column<RecordRow>[] = [
    {
      label: "key (hash)",
      kind: "name",
      cell: (row) =>
        h("span", null, row.key, isMeant(row) && h("b", { class: "good" }, ` is ${short(search)}`)),
    },
    {
      label: "state",
      cell: ({ state, replays }) =>
        h(
          "span",
          { class: state === "complete" ? "good" : state === "pending" ? "warn" : "bad" },
          `${recordWords[state]}${replays > 0 ? `, replayed ${replays}×` : ""}`,
        ),
    },
    { label: "unfinished runs", kind: "number", cell: ({ attempts }) => `${attempts ?? "–"}` },
    { label: "since", kind: "number", cell: ({ since }) => (since === undefined ? "–" : ago(now - since)) },
    { label: "kept for", kind: "number", cell: ({ until }) => left(until - now) },
    {
      label: "endpoints",
      cell: (row) => h("span", null, shares(row.shares, endpoints), ` ${sharesText({ ...row, held: true })}`),
    },
  ];
  const fits = (row: RecordRow) => isMeant(row) || matching(`${row.key} ${recordWords[row.state]}`, search);
  const none = "No idempotent run has left a record yet.";
  return listing("Idempotent runs", columns, { rows, fits, none });
}

/** The latest requests. */
function requests({ requests: rows }: PageState, { search, hashes }: PageActions): Element {
  const columns: Column<RequestRow>[] = [
    { label: "time", cell: ({ at }) => clock(at) },
    { label: "client", cell: ({ client }) => client },
    { label: "endpoint", cell: ({ endpoint }) => endpoint },
    { label: "operation", cell: ({ operation }) => operation },
    { label: "resource", kind: "name", cell: ({ resource }) => name(resource) },
    {
      label: "result",
      cell: ({ result, failed }) =>
        h(
          "span",
          { class: failed ? "bad" : /^(held|gone|waiting|failed)/.test(result) ? "warn" : "" },
          result,
        ),
    },
    { label: "took", kind: "number", cell: ({ ms }) => `${ms} ms` },
    { label: "billed", kind: "number", cell: ({ billed }) => `${billed}` },
  ];
  const fits = ({ client, endpoint, operation, resource, result }: RequestRow) =>
    hashes.some((hash) => resource.endsWith(hash)) ||
    matching([client, endpoint, operation, resource, result].join(" "), search);
  return listing("Latest requests", columns, { rows, most: 30, fits, none: "No request has arrived yet." });
}
