import type { Request, Timeline, TimelineEvent } from "../timeline.ts";
import { type Bar, barsOf } from "./bars.ts";

// From a timeline to what is drawn, in times and lanes: no pixels here.

/** All that is drawn. */
export interface Shapes {
  readonly title: string;
  /** ms from the beginning to the end. */
  readonly to: number;
  readonly lanes: readonly Lane[];
  readonly bars: readonly Bar[];
  readonly exchanges: readonly Exchange[];
  readonly calls: readonly Call[];
  readonly pauses: readonly Pause[];
  readonly verdicts: readonly Verdict[];
  /** Whether bars name their keys: there are several. */
  readonly namesKeys: boolean;
}

/** A horizontal strip of the picture: one client, or one endpoint. */
export interface Lane {
  readonly kind: "client" | "endpoint";
  readonly name: string;
  /** What bars call a client, so that it can be told apart without its colour. */
  readonly letter: string;
  /** The class of a client's colour. An endpoint has none. */
  readonly colour: string;
  /** Rows of bars, one above the other. */
  readonly rows: number;
  readonly hasPause: boolean;
}

/** A request and its reply. */
export interface Exchange extends Request {
  readonly sent: number;
  lost?: { readonly time: number; readonly until: number };
  executed?: Answered;
  answered?: Answered;
}

type Answered = Extract<TimelineEvent, { phase: "executed" | "answered" }>;

/** A call of the library, from its beginning to its result. */
export type Call = Extract<TimelineEvent, { phase: "returned" }> & { readonly from: number };

/** The time in which a client does not run. */
export interface Pause {
  readonly client: string;
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

/** A promise that was kept or broken. */
export type Verdict = Extract<TimelineEvent, { phase: "violated" | "upheld" }>;

const isVerdict = (event: TimelineEvent): event is Verdict =>
  event.phase === "violated" || event.phase === "upheld";

/** Computes what a picture of the timeline consists of. */
export function shapesOf({ title, clients, endpoints, to, events }: Timeline): Shapes {
  const bars = barsOf(events, to);
  const pauses = pausesOf(events);
  const letters = lettersOf(clients);
  const lanes = [...clients, ...endpoints].map((name, at): Lane => {
    const isClient = at < clients.length;
    return {
      kind: isClient ? "client" : "endpoint",
      name,
      letter: letters[at] ?? "",
      colour: isClient ? `c${at}` : "",
      rows: Math.max(0, ...bars.filter(({ lane }) => lane === name).map(({ row }) => row + 1)),
      hasPause: pauses.some(({ client }) => client === name),
    };
  });
  return {
    ...{ title, to, lanes, bars, pauses },
    exchanges: exchangesOf(events),
    calls: callsOf(events),
    verdicts: events.filter(isVerdict),
    namesKeys: new Set(events.flatMap((event) => ("key" in event && event.key) || [])).size > 1,
  };
}

/** The last word of each name if all of these are short, for example `1` of `delivery 1`; otherwise A, B, C, …. */
function lettersOf(names: readonly string[]): string[] {
  const words = names.map((name) => name.split(" ").at(-1)!);
  if (words.every(({ length }) => length <= 3)) return words;
  return names.map((_, at) => String.fromCharCode(65 + at));
}

/** Joins the events of each request. */
function exchangesOf(events: readonly TimelineEvent[]): Exchange[] {
  const exchanges = new Map<string, Exchange>();
  for (const event of events) {
    if (event.phase === "sent") exchanges.set(event.request, { ...event, sent: event.time });
    if (event.phase === "lost") exchanges.get(event.request)!.lost = event;
    if (event.phase === "executed") exchanges.get(event.request)!.executed = event;
    if (event.phase === "answered") exchanges.get(event.request)!.answered = event;
  }
  return [...exchanges.values()];
}

/** The first result of a call ends it. Those of further rounds are moments. */
function callsOf(events: readonly TimelineEvent[]): Call[] {
  const open = new Map<string, TimelineEvent & { phase: "called" }>();
  const calls = events.flatMap((event): Call[] => {
    if (event.phase === "called") open.set(event.client, event);
    if (event.phase !== "returned") return [];
    const { operation, time: from } = open.get(event.client) ?? event;
    open.delete(event.client);
    return [{ ...event, operation, from }];
  });
  return calls.sort((a, b) => a.from - b.from);
}

function pausesOf(events: readonly TimelineEvent[]): Pause[] {
  return events.flatMap((event, at) => {
    if (event.phase !== "frozen") return [];
    const { client, name, time: from } = event;
    const end = events.slice(at).find((other) => other.phase === "thawed" && other.client === client);
    return [{ client, name, from, to: end!.time }];
  });
}
