import type { Flight, LaneIndex, Point, RequestHistory } from "./shapes.ts";
import type { TimelineEvent } from "./timeline.ts";

/** How much longer than the median a flight takes that is called late. */
const lateFactor = 4;
/** ms that it takes at least. By a clock of whole ms most flights take 0 or 1, and the others many times the median. */
const leastLate = 20;

/** Joins the events of each request. */
export function requestsOf(events: readonly TimelineEvent[]): RequestHistory[] {
  const histories = new Map<string, RequestHistory>();
  for (const event of events) {
    const { phase, request, time, outcome } = event;
    if (request === undefined) continue;
    const history = histories.get(request) ?? emptyHistory(request);
    histories.set(request, history);
    history.client ??= event.client;
    history.endpoint ??= event.endpoint;
    history.operation ??= event.operation;
    history.key ??= event.key;
    history.detail ??= event.detail;
    if (phase === "sent") history.sent ??= time;
    if (phase === "executed") history.executed.push({ time, outcome });
    if (phase === "answered") history.answered ??= { time, outcome };
    if (phase === "lost") history.lost.push({ time, what: event.what ?? "request" });
  }
  return [...histories.values()];
}

function emptyHistory(request: string): RequestHistory {
  const unknown = {
    client: undefined,
    endpoint: undefined,
    operation: undefined,
    key: undefined,
    sent: undefined,
    answered: undefined,
    detail: undefined,
  };
  return { request, ...unknown, executed: [], lost: [] };
}

/** The lines of all requests whose sending is known. */
export function flightsOf(requests: readonly RequestHistory[], index: LaneIndex): Flight[] {
  const flights = requests.flatMap((history) => {
    const client = index.client(history.client);
    const endpoint = index.endpoint(history.endpoint);
    if (client === -1 || endpoint === -1 || history.sent === undefined) return [];
    const ends = { client, endpoint };
    return [...requestFlights(history, history.sent, ends), ...replyFlights(history, history.sent, ends)];
  });
  const median = medianOf(flights.filter(({ fate }) => fate === "arrived").map(duration));
  const late = Math.max(leastLate, lateFactor * median);
  return flights.map((flight) => {
    if (flight.fate === "arrived") return { ...flight, late: duration(flight) > late };
    return { ...flight, to: { ...flight.to, time: Math.max(flight.to.time, flight.from.time + median) } };
  });
}

const duration = ({ from, to }: Flight): number => to.time - from.time;

function medianOf(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

interface Ends {
  readonly client: number;
  readonly endpoint: number;
}

function requestFlights(history: RequestHistory, sent: number, ends: Ends): Flight[] {
  const from: Point = { lane: ends.client, time: sent };
  const flight = (time: number, fate: Flight["fate"], forkOf?: Point): Flight => ({
    kind: "request",
    from,
    to: { lane: ends.endpoint, time },
    fate,
    forkOf,
    late: false,
    outcome: undefined,
    client: ends.client,
    history,
  });
  const [first, ...again] = history.executed;
  const arrived = first ? [flight(first.time, "arrived")] : [];
  const fork = first && { lane: ends.endpoint, time: first.time };
  const forks = again.map(({ time }) => flight(time, "arrived", fork));
  const lost = history.lost
    .filter(({ what }) => what === "request")
    .map(({ time }) => flight(time, "lost", fork));
  const all = [...arrived, ...forks, ...lost];
  if (all.length > 0) return all;
  // An answer without an execution: the endpoint refused it, or its source does not know what endpoints do.
  if (history.answered) return [flight((sent + history.answered.time) / 2, "arrived")];
  return [flight(sent, "open")];
}

function replyFlights(history: RequestHistory, sent: number, ends: Ends): Flight[] {
  const { executed, answered } = history;
  const flight = (left: number, time: number, fate: Flight["fate"]): Flight => ({
    kind: "reply",
    from: { lane: ends.endpoint, time: left },
    to: { lane: ends.client, time },
    fate,
    forkOf: undefined,
    late: false,
    outcome: fate === "arrived" ? answered?.outcome : undefined,
    client: ends.client,
    history,
  });
  const lost = history.lost
    .filter(({ what }) => what === "reply")
    .map(({ time }) => flight(executed.filter((one) => one.time <= time).at(-1)?.time ?? time, time, "lost"));
  if (!answered) return lost;
  const left = executed.find(({ time }) => time <= answered.time)?.time ?? (sent + answered.time) / 2;
  return [...lost, flight(left, answered.time, "arrived")];
}
