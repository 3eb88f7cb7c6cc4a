import type { Flight, LaneIndex, RequestHistory } from "./shapes.ts";
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
    if (phase === "executed") history.executed ??= { time, outcome };
    if (phase === "answered") history.answered ??= { time, outcome };
    if (phase === "lost") history.lost ??= { time, what: event.what ?? "request" };
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
    executed: undefined,
    answered: undefined,
    lost: undefined,
    detail: undefined,
  };
  return { request, ...unknown };
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
  const { executed, answered, lost } = history;
  const flight = (time: number, fate: Flight["fate"]): Flight => ({
    kind: "request",
    from: { lane: ends.client, time: sent },
    to: { lane: ends.endpoint, time },
    fate,
    late: false,
    outcome: undefined,
    client: ends.client,
    history,
  });
  if (executed) return [flight(executed.time, "arrived")];
  if (lost?.what === "request") return [flight(lost.time, "lost")];
  // An answer without an execution: the endpoint refused it, or its source does not know what endpoints do.
  if (answered) return [flight((sent + answered.time) / 2, "arrived")];
  return [flight(sent, "open")];
}

function replyFlights(history: RequestHistory, sent: number, ends: Ends): Flight[] {
  const { executed, answered, lost } = history;
  const flight = (time: number, fate: Flight["fate"]): Flight => ({
    kind: "reply",
    from: { lane: ends.endpoint, time: executed?.time ?? (sent + time) / 2 },
    to: { lane: ends.client, time },
    fate,
    late: false,
    outcome: fate === "arrived" ? answered?.outcome : undefined,
    client: ends.client,
    history,
  });
  if (answered) return [flight(answered.time, "arrived")];
  return lost?.what === "reply" ? [flight(lost.time, "lost")] : [];
}
