import { barsOf, fillRows } from "./bars.ts";
import { flightsOf, requestsOf } from "./requests.ts";
import type { Call, Fault, Lane, LaneIndex, Shapes, Span, Verdict } from "./shapes.ts";
import type { Timeline, TimelineEvent } from "./timeline.ts";

// From a timeline to what is drawn, in times and lanes: no pixels here, and nothing of a browser.

/** Computes what a picture of the timeline consists of. */
export function shapesOf(timeline: Timeline): Shapes {
  const { clients, endpoints, events } = timeline;
  const index = laneIndex(clients, endpoints);
  const span = spanOf(timeline);
  const { bars, rows } = fillRows(barsOf(events, index, span.to));
  const faults = faultsOf(events, index, span.to);
  const letters = lettersOf(clients);
  const lanes = [...clients, ...endpoints].map((name, lane): Lane => {
    const ofClient = lane < clients.length;
    return {
      kind: ofClient ? "client" : "endpoint",
      name,
      letter: letters[lane] ?? "",
      colour: ofClient ? lane : -1,
      rows: rows[lane] ?? 0,
      faultRows: Math.max(0, ...faults.filter((fault) => fault.lane === lane).map(({ row }) => row + 1)),
    };
  });
  return {
    ...span,
    title: timeline.title,
    lanes,
    bars,
    flights: flightsOf(requestsOf(events), index),
    calls: callsOf(events, index, span.to),
    faults,
    verdicts: verdictsOf(events, index),
    namesKeys: new Set(events.flatMap(({ key }) => key ?? [])).size > 1,
  };
}

function laneIndex(clients: readonly string[], endpoints: readonly string[]): LaneIndex {
  const ofClient = new Map(clients.map((name, at) => [name, at]));
  const ofEndpoint = new Map(endpoints.map((name, at) => [name, clients.length + at]));
  return {
    client: (name) => (name === undefined ? -1 : (ofClient.get(name) ?? -1)),
    endpoint: (name) => (name === undefined ? -1 : (ofEndpoint.get(name) ?? -1)),
  };
}

function spanOf({ from, to, events }: Timeline): Span {
  const start = from ?? events[0]?.time ?? 0;
  const end = to ?? events.at(-1)?.time ?? start;
  return { from: start, to: Math.max(end, start) };
}

/** The end of each name if these differ and are short (`client A` → `A`); otherwise A, B, C, …. */
export function lettersOf(names: readonly string[]): string[] {
  const ends = names.map((name) => /(?:^|[\s_-]|[a-z](?=[A-Z\d]))([^\s_-]{1,3})$/.exec(name)?.[1] ?? "");
  if (new Set(ends).size === ends.length && !ends.includes("")) return ends;
  return names.map((_, at) => {
    const letter = String.fromCharCode(65 + (at % 26));
    return at < 26 ? letter : `${letter}${Math.floor(at / 26)}`;
  });
}

function callsOf(events: readonly TimelineEvent[], index: LaneIndex, end: number): Call[] {
  const open = new Map<string, TimelineEvent>();
  const calls: Call[] = [];
  const add = (called: TimelineEvent, returned?: TimelineEvent) => {
    const lane = index.client(called.client);
    if (lane === -1) return;
    calls.push({
      lane,
      from: called.time,
      to: returned?.time ?? end,
      operation: called.operation ?? returned?.operation ?? "call",
      key: called.key ?? returned?.key,
      outcome: returned && (returned.outcome ?? "granted"),
      word: returned?.name,
      votes: returned?.votes,
      fence: returned?.fence,
      validity: returned?.validity,
      detail: returned?.detail ?? called.detail,
    });
  };
  for (const event of events) {
    if (event.phase !== "called" && event.phase !== "returned") continue;
    const id = `${event.client}\n${event.call ?? event.operation}`;
    const called = open.get(id);
    if (event.phase === "called") {
      open.set(id, event);
    } else {
      open.delete(id);
      add(called ?? event, event);
    }
  }
  for (const called of open.values()) add(called);
  return calls.sort((a, b) => a.from - b.from);
}

function faultsOf(events: readonly TimelineEvent[], index: LaneIndex, end: number): Fault[] {
  const spans: { fault: TimelineEvent; to: number }[] = [];
  for (const event of events) {
    if (event.phase === "fault") spans.push({ fault: event, to: Number.POSITIVE_INFINITY });
    if (event.phase !== "healed") continue;
    const open = spans.filter(
      ({ fault, to }) =>
        to === Number.POSITIVE_INFINITY &&
        fault.client === event.client &&
        fault.endpoint === event.endpoint &&
        (event.name === undefined || fault.name === event.name),
    );
    const last = open.at(-1);
    if (last) last.to = event.time;
  }
  const ends = new Map<number, number[]>();
  return spans.flatMap(({ fault, to }) => {
    const [client, endpoint] = [index.client(fault.client), index.endpoint(fault.endpoint)];
    const lane = endpoint === -1 ? client : endpoint;
    if (lane === -1) return [];
    const last = Math.min(to, Math.max(end, fault.time));
    const rows = ends.get(lane) ?? [];
    const free = rows.findIndex((busy) => busy <= fault.time);
    const row = free === -1 ? rows.length : free;
    rows[row] = last;
    ends.set(lane, rows);
    const name = fault.name ?? "fault";
    return {
      name,
      lane,
      other: endpoint !== -1 && client !== -1 ? client : undefined,
      from: fault.time,
      to: last,
      open: to === Number.POSITIVE_INFINITY,
      hatched: client !== -1 && endpoint === -1 && /^(paused|frozen)/.test(name),
      row,
      detail: fault.detail,
    };
  });
}

function verdictsOf(events: readonly TimelineEvent[], index: LaneIndex): Verdict[] {
  return events
    .filter(({ phase }) => phase === "violated" || phase === "upheld")
    .map(({ phase, time, client, endpoint, name, detail }) => ({
      isBroken: phase === "violated",
      time,
      lane: client === undefined ? index.endpoint(endpoint) : index.client(client),
      name: name ?? phase,
      detail,
    }));
}
