import type { Happening, LockRow, PageState, RecordRow, RequestRow, Share } from "../state.ts";
import { type Column, cut, element, table } from "./dom.ts";
import { clock, duration, matching, recordWords, sharesText, shareText, wrongs } from "./words.ts";

// The parts of the page that are drawn anew at each message.

const example = `import { endpointsFromEnv, Redlock } from "redlock-edge";
const redlock = new Redlock({ endpoints: endpointsFromEnv(process.env) });
await redlock.using("invoice:42", { ttl: 30_000, fencing: true }, async () => { … });`;

function shares(list: readonly Share[], names: readonly string[]): HTMLElement {
  const marks = list.map((share, index) => {
    const mark = element("span", `share ${share}`);
    mark.title = shareText(share, names[index] ?? "");
    return mark;
  });
  const made = element("span", "", ...marks);
  made.setAttribute("role", "img");
  made.setAttribute(
    "aria-label",
    list.map((share, index) => shareText(share, names[index] ?? "")).join(", "),
  );
  return made;
}

const none = (...children: (Node | string)[]) => element("div", "none", ...children);

/** A panel's contents, and what stands beside its heading. */
export interface Panel {
  readonly note: string;
  readonly nodes: readonly Node[];
}

/** Rows of a table that are drawn: a long page is slow. */
const mostDrawn = 50;

/** The rows that have the words of a search, as far as they are drawn, and how many there are of how many. */
function found<Row>(
  { rows, more = 0, words }: { rows: readonly Row[]; more?: number; words: (row: Row) => string },
  search: string,
): { readonly shown: readonly Row[]; readonly note: string } {
  const fitting = rows.filter((row) => matching(words(row), search));
  const shown = fitting.slice(0, mostDrawn);
  const total = `${rows.length + more}${more > 0 ? " or more" : ""}`;
  const matches = search === "" ? total : `${fitting.length} of ${total} match`;
  const drawn = shown.length < fitting.length ? `, the first ${shown.length} are shown` : "";
  return { shown, note: matches + drawn };
}

/** What is held now. */
export function locksPanel({ now, locks, moreLocks, endpoints }: PageState, search: string): Panel {
  if (locks.length === 0) {
    const nodes = [
      none(
        "Nothing is held. Give your program the variables that the command has printed, and run it:",
        element("pre", "", element("code", "", example)),
      ),
    ];
    return { note: "", nodes };
  }
  const { shown, note } = found(
    {
      rows: locks,
      more: moreLocks,
      words: ({ resource, kind, holder, note, client, fence }) =>
        [resource, kind, holder, note, client, fence].join(" "),
    },
    search,
  );
  const names = endpoints.map(({ name }) => name);
  const columns: Column<LockRow>[] = [
    {
      label: "resource",
      kind: "name",
      cell: ({ resource, note }) =>
        cut(note === undefined ? resource : `${resource} ${JSON.stringify(note)}`),
    },
    { label: "kind", width: 135, cell: ({ kind }) => kind },
    {
      label: "holder",
      width: 185,
      cell: ({ holder, client = "" }) => element("span", "", `${client} `, element("code", "soft", holder)),
    },
    {
      label: "fence",
      kind: "number",
      width: 135,
      cell: ({ fence }) => (fence === undefined ? "–" : `${fence}`),
    },
    { label: "remaining", kind: "number", width: 105, cell: ({ until }) => duration(until - now) },
    {
      label: "endpoints",
      width: 190,
      cell: (row) =>
        element("span", row.held ? "" : "warn", shares(row.shares, names), ` ${sharesText(row)}`),
    },
  ];
  return { note, nodes: [table(columns, shown)] };
}

/** The keys of idempotent runs. */
export function recordsPanel({ now, records, moreRecords, endpoints }: PageState, search: string): Panel {
  if (records.length === 0) return { note: "", nodes: [none("No idempotent run has left a record yet.")] };
  const words = ({ key, state }: RecordRow) => `${key} ${recordWords[state]}`;
  const { shown, note } = found({ rows: records, more: moreRecords, words }, search);
  const names = endpoints.map(({ name }) => name);
  const columns: Column<RecordRow>[] = [
    { label: "key (hash)", kind: "name", cell: ({ key }) => element("code", "", key) },
    {
      label: "state",
      width: 120,
      cell: ({ state }) =>
        element(
          "span",
          state === "complete" ? "good" : state === "pending" ? "warn" : "bad",
          recordWords[state],
        ),
    },
    {
      label: "attempts",
      kind: "number",
      width: 80,
      cell: ({ attempts }) => (attempts === undefined ? "–" : `${attempts}`),
    },
    {
      label: "age",
      kind: "number",
      width: 105,
      cell: ({ since }) => (since === undefined ? "–" : duration(now - since)),
    },
    { label: "remaining", kind: "number", width: 105, cell: ({ until }) => duration(until - now) },
    { label: "endpoints", width: 190, cell: (row) => shares(row.shares, names) },
  ];
  return { note, nodes: [table(columns, shown)] };
}

/** The latest requests. */
export function requestsPanel({ requests }: PageState, search: string): Panel {
  if (requests.length === 0) return { note: "", nodes: [none("No request has arrived yet.")] };
  const words = ({ client, endpoint, operation, resource, result }: RequestRow) =>
    [client, endpoint, operation, resource, result].join(" ");
  const { shown, note } = found({ rows: requests, words }, search);
  const columns: Column<RequestRow>[] = [
    { label: "time", width: 90, cell: ({ at }) => clock(at) },
    { label: "client", width: 100, cell: ({ client }) => client },
    { label: "endpoint", width: 100, cell: ({ endpoint }) => endpoint },
    { label: "operation", kind: "name", width: 110, cell: ({ operation }) => operation },
    { label: "resource", cell: ({ resource }) => cut(resource) },
    {
      label: "result",
      width: 150,
      cell: ({ result, failed }) =>
        element("span", failed ? "bad" : /^(held|gone)/.test(result) ? "warn" : "", result),
    },
    { label: "took", kind: "number", width: 75, cell: ({ ms }) => (ms === undefined ? "…" : `${ms} ms`) },
    { label: "billed", kind: "number", width: 55, cell: ({ billed }) => `${billed}` },
  ];
  return { note: search === "" ? "the newest first" : note, nodes: [table(columns, shown)] };
}

/** What happened last, in sentences. */
export function happenedPanel(happenings: readonly Happening[]): Node[] {
  if (happenings.length === 0) return [none("Nothing yet.")];
  const lines = happenings
    .slice(0, 6)
    .map(({ at, name, text }) =>
      element("li", "", element("time", "", clock(at)), cut(name), " ", said(text)),
    );
  return [element("ol", "happened", ...lines)];
}

const said = (text: string) => element("span", "said", text);

const mostWrongs = 8;

/** What is wrong now, in sentences; empty: nothing is. */
export function wrongPanel(state: PageState): Node[] {
  const all = wrongs(state);
  if (all.length === 0) return [];
  const lines = all
    .slice(0, mostWrongs)
    .map(({ name, text }) => element("li", "", cut(name), " ", said(text)));
  const more = all.length - lines.length;
  return [element("ul", "happened", ...lines, ...(more > 0 ? [element("li", "", `and ${more} more`)] : []))];
}
