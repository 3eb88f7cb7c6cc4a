import type { Timeline, TimelineEvent } from "../../playground/picture/timeline.ts";

/** Who and what a violation is about, and which time it took. */
interface Matter {
  readonly clients: ReadonlySet<string>;
  readonly keys: ReadonlySet<string>;
  readonly from: number;
  readonly to: number;
}

/**
 * Cuts a recording down to what its first violation is about: the clients that it names, those that hold the same at that
 * moment, and those that removed it, what they did about it, and the endpoints that took part. A recording without a violation stays as it is.
 */
export function cutDown(timeline: Timeline): Timeline {
  const { events } = timeline;
  const violation = events.find(({ phase }) => phase === "violated");
  if (!violation) return timeline;
  const matter = matterOf(timeline, violation);
  const requests = requestsThatMatter(events, matter);
  const work = events.filter((event) => isWork(event) && belongs(event, matter, requests));
  const took = new Set(work.flatMap(({ endpoint }) => endpoint ?? []));
  const endpoints = timeline.endpoints.filter((name) => took.has(name));
  const kept = new Set(work);
  const { from, to } = matter;
  const faults = spansIn(events, matter).filter(
    ({ client, endpoint }) =>
      (client === undefined || matter.clients.has(client)) &&
      (endpoint === undefined || endpoints.includes(endpoint)),
  );
  for (const event of faults) kept.add(event);
  for (const event of firstOfEach(events)) if (event.time <= to) kept.add(event);
  const clients = timeline.clients.filter((name) => matter.clients.has(name));
  return { ...timeline, clients, endpoints, from, to, events: events.filter((event) => kept.has(event)) };
}

/** The first violation of each invariant: usually it causes the others. */
function firstOfEach(events: readonly TimelineEvent[]): readonly TimelineEvent[] {
  const violations = events.filter(({ phase }) => phase === "violated");
  return violations.filter(({ name }, at) => violations.findIndex((one) => one.name === name) === at);
}

function matterOf({ clients, events }: Timeline, violation: TimelineEvent): Matter {
  const { time, client, detail = "" } = violation;
  const before = events.filter((event) => event.time <= time);
  const named = clients.filter((name) => name === client || new RegExp(`\\b${name}\\b`).test(detail));
  // What nobody is named for concerns everybody.
  const accused = new Set(named.length === 0 ? clients : named);
  const keys = keysOf(before, accused, violation);
  const holders = standing(before, time).flatMap(({ key, holder, client: relies }) =>
    key !== undefined && keys.has(key) ? [holder ?? relies ?? ""] : [],
  );
  const concerned = new Set([...accused, ...holders.filter((name) => clients.includes(name))]);
  const starts = [...concerned].map((name) => startOf(before, name, keys, time));
  const from = Math.min(time, ...starts);
  for (const name of endersOf(before, { clients: concerned, keys, from })) concerned.add(name);
  return { clients: concerned, keys, from, to: time + Math.max(2, 0.08 * (time - from)) };
}

/** The resource that the violation is about: what the detail names, else the last that its clients used. */
function keysOf(
  before: readonly TimelineEvent[],
  accused: ReadonlySet<string>,
  { key, detail = "" }: TimelineEvent,
): ReadonlySet<string> {
  if (key !== undefined) return new Set([key]);
  const known = new Set(before.flatMap((event) => event.key ?? []));
  const words = detail.split(/[\s,:]+/);
  const named = [...known].filter((one) => words.includes(one));
  if (named.length > 0) return new Set(named);
  const last = before.filter((event) => event.key !== undefined && accused.has(event.client ?? "")).at(-1);
  return new Set(last?.key === undefined ? known : [last.key]);
}

/** What is stored, or relied on, at a time. */
function standing(before: readonly TimelineEvent[], time: number): TimelineEvent[] {
  const open = new Map<string, TimelineEvent>();
  for (const event of before) {
    const { phase, client, endpoint, key, holder } = event;
    const id = (kind: string) => [kind, client, endpoint, key, holder].join("\n");
    if (phase === "stored" || phase === "valid") open.set(id(phase), event);
    if (phase === "removed") open.delete(id("stored"));
    if (phase === "ended") open.delete(id("valid"));
  }
  return [...open.values()].filter(({ until }) => until === undefined || until > time);
}

/** Those whose requests removed what these clients had stored. */
function endersOf(
  before: readonly TimelineEvent[],
  { clients, keys, from }: Omit<Matter, "to">,
): readonly string[] {
  const removed = before.filter(
    ({ phase, key = "", holder = "", time }) =>
      phase === "removed" && keys.has(key) && clients.has(holder) && time >= from,
  );
  return removed.flatMap(({ time, endpoint }) =>
    before.flatMap((event) =>
      event.phase === "executed" && event.time === time && event.endpoint === endpoint
        ? (event.client ?? [])
        : [],
    ),
  );
}

/** When a client's part in it begins: with the call that got what it relies on, or that is under way. */
function startOf(
  before: readonly TimelineEvent[],
  client: string,
  keys: ReadonlySet<string>,
  time: number,
): number {
  const own = before.filter((event) => event.client === client && keys.has(event.key ?? ""));
  const calls = own.filter(({ phase }) => phase === "called");
  const last = calls.at(-1)?.time ?? own.at(-1)?.time ?? time;
  const granted = grantedAt(own);
  if (granted === undefined) return last;
  const got = calls.filter(
    (event) => event.time <= granted && /acquire|using|run/i.test(event.operation ?? ""),
  );
  return Math.min(last, got.at(-1)?.time ?? granted);
}

/** Since when a client has relied on what it relied on last: extensions do not count. */
function grantedAt(own: readonly TimelineEvent[]): number | undefined {
  let since: number | undefined;
  let until = 0;
  for (const event of own) {
    if (event.phase === "ended") until = event.time;
    if (event.phase !== "valid") continue;
    if (since === undefined || until <= event.time) since = event.time;
    until = event.until ?? Number.POSITIVE_INFINITY;
  }
  return since;
}

/** The requests of which something happens in that time: late ones were sent long before. */
function requestsThatMatter(
  events: readonly TimelineEvent[],
  { clients, keys, from, to }: Matter,
): Set<string> {
  const about = new Map<string, boolean>();
  for (const { phase, request, client, key } of events) {
    if (phase === "sent" && request !== undefined)
      about.set(request, clients.has(client ?? "") && keys.has(key ?? ""));
  }
  const inTime = events.filter(({ time, request }) => request !== undefined && time >= from && time <= to);
  return new Set(inTime.flatMap(({ request = "" }) => (about.get(request) ? [request] : [])));
}

const isWork = ({ phase }: TimelineEvent): boolean =>
  phase !== "fault" && phase !== "healed" && phase !== "violated";

function belongs(event: TimelineEvent, matter: Matter, requests: ReadonlySet<string>): boolean {
  const { time, request, client, holder, key } = event;
  const { clients, keys, from, to } = matter;
  if (time > to) return false;
  if (request !== undefined) return requests.has(request);
  if (!keys.has(key ?? "")) return false;
  // What is stored by others explains refusals.
  if (event.phase === "stored" || event.phase === "removed")
    return holder === undefined || clients.has(holder) || time >= from;
  if (!clients.has(client ?? "")) return false;
  return time >= from || event.phase === "valid" || event.phase === "ended";
}

/** Faults that last in that time, with their ends. */
function spansIn(events: readonly TimelineEvent[], { from, to }: Matter): TimelineEvent[] {
  const open = new Map<string, TimelineEvent>();
  const kept: TimelineEvent[] = [];
  for (const event of events) {
    if (event.phase !== "fault" && event.phase !== "healed") continue;
    const id = [event.name, event.client, event.endpoint].join("\n");
    const began = open.get(id);
    if (event.phase === "fault") open.set(id, event);
    else if (began) {
      open.delete(id);
      if (event.time >= from && began.time <= to) kept.push(began, event);
    }
  }
  return [...kept, ...[...open.values()].filter(({ time }) => time <= to)];
}
