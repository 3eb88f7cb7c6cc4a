import type { Happening, LockRow, PageState, RecordRow, RequestRow, Share } from "../state.ts";
import { type Column, element, table } from "./dom.ts";
import { clock, duration, sharesText, shareText } from "./words.ts";

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
const more = (count: number) => (count > 0 ? [element("p", "soft", `… and ${count} more`)] : []);

/** What is held now. */
export function locksPanel({ now, locks, moreLocks, endpoints }: PageState): Node[] {
  if (locks.length === 0) {
    return [
      none(
        "Nothing is held. Give your program the variables that the command has printed, and run it:",
        element("pre", "", element("code", "", example)),
      ),
    ];
  }
  const names = endpoints.map(({ name }) => name);
  const columns: Column<LockRow>[] = [
    { label: "resource", kind: "name", cell: ({ resource }) => resource },
    { label: "kind", cell: ({ kind }) => kind },
    {
      label: "holder",
      cell: ({ holder, client = "" }) => element("span", "", `${client} `, element("code", "soft", holder)),
    },
    { label: "fence", kind: "number", cell: ({ fence }) => (fence === undefined ? "–" : `${fence}`) },
    { label: "remaining", kind: "number", cell: ({ until }) => duration(until - now) },
    {
      label: "endpoints",
      cell: (row) =>
        element("span", row.held ? "" : "warn", shares(row.shares, names), ` ${sharesText(row)}`),
    },
  ];
  return [table(columns, locks), ...more(moreLocks)];
}

/** The idempotency records. */
export function recordsPanel({ now, records, moreRecords, endpoints }: PageState): Node[] {
  if (records.length === 0) {
    return [none("No idempotent run has left a record yet.")];
  }
  const names = endpoints.map(({ name }) => name);
  const columns: Column<RecordRow>[] = [
    { label: "key (hash)", kind: "name", cell: ({ key }) => element("code", "", key) },
    {
      label: "state",
      cell: ({ state }) =>
        element("span", state === "complete" ? "good" : state === "pending" ? "warn" : "bad", state),
    },
    {
      label: "age",
      kind: "number",
      cell: ({ since }) => (since === undefined ? "–" : duration(now - since)),
    },
    { label: "remaining", kind: "number", cell: ({ until }) => duration(until - now) },
    { label: "endpoints", cell: (row) => shares(row.shares, names) },
  ];
  return [table(columns, records), ...more(moreRecords)];
}

/** The latest requests. */
export function requestsPanel({ requests }: PageState): Node[] {
  if (requests.length === 0) return [none("No request has arrived yet.")];
  const columns: Column<RequestRow>[] = [
    { label: "time", cell: ({ at }) => clock(at) },
    { label: "client", cell: ({ client }) => client },
    { label: "endpoint", cell: ({ endpoint }) => endpoint },
    { label: "operation", kind: "name", cell: ({ operation }) => operation },
    { label: "resource", cell: ({ resource }) => resource },
    {
      label: "result",
      cell: ({ result, failed }) =>
        element("span", failed ? "bad" : /^(held|gone)/.test(result) ? "warn" : "", result),
    },
    { label: "took", kind: "number", cell: ({ ms }) => (ms === undefined ? "…" : `${ms} ms`) },
    { label: "billed", kind: "number", cell: ({ billed }) => `${billed}` },
  ];
  return [table(columns, requests)];
}

/** What happened last, in sentences. */
export function happenedPanel(happenings: readonly Happening[]): Node[] {
  if (happenings.length === 0) return [none("Nothing yet.")];
  const lines = happenings
    .slice(0, 6)
    .map(({ at, text }) => element("li", "", element("time", "", clock(at)), element("span", "", text)));
  return [element("ol", "happened", ...lines)];
}
