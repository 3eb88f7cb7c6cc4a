import type { TimelineEvent } from "../timeline.ts";

/** What is stored on an endpoint, or what a client may rely on. */
export interface Bar {
  readonly kind: "validity" | "stored";
  /** The name of its endpoint or client. */
  readonly lane: string;
  /** From 0, at the top. */
  readonly row: number;
  readonly from: number;
  readonly to: number;
  /** `open`: it goes on after the timeline. */
  readonly end: "removed" | "expired" | "open";
  readonly key: string;
  /** The client that holds it. */
  readonly holder: string;
  readonly fence: number | undefined;
  /** When it expires, or expired, or would have expired. */
  readonly until: number;
  /** When it was written again. */
  readonly refreshed: readonly number[];
  /** From when to its end a validity is taken off for drift. */
  readonly unsafe?: number;
}

type Begin = Extract<TimelineEvent, { phase: "stored" | "valid" }>;

/** A bar whose end is not known yet. */
interface OpenBar {
  readonly event: Begin;
  until: number;
  readonly refreshed: number[];
}

/**
 * What was stored, and what was valid.
 *
 * Values are told apart by endpoint, key and holder. An event for one that is there already refreshes it. Each ends at its
 * `until` without a further event.
 *
 * @param end where bars end that go on
 */
export function barsOf(events: readonly TimelineEvent[], end: number): Bar[] {
  const open = new Map<string, OpenBar>();
  const bars: Omit<Bar, "row">[] = [];
  const close = (bar: OpenBar | undefined, time: number, how: Bar["end"]) => {
    if (bar) bars.push(finished(bar, time, how));
  };
  for (const event of events) {
    if (event.phase === "removed" || event.phase === "ended") {
      close(open.get(idOf(event)), event.time, "removed");
      open.delete(idOf(event));
    }
    if (event.phase !== "stored" && event.phase !== "valid") continue;
    const before = open.get(idOf(event));
    if (before && before.until > event.time) {
      before.until = event.until;
      before.refreshed.push(event.time);
    } else {
      close(before, event.time, "expired");
      open.set(idOf(event), { event, until: event.until, refreshed: [] });
    }
  }
  for (const bar of open.values()) close(bar, end, "open");
  return withRows(bars.sort((a, b) => a.from - b.from));
}

type About = Extract<TimelineEvent, { phase: "stored" | "removed" | "valid" | "ended" }>;

const idOf = (event: About): string =>
  "endpoint" in event ? `${event.endpoint}\n${event.key}\n${event.holder}` : `${event.client}\n${event.key}`;

function finished({ event, until, refreshed }: OpenBar, time: number, how: Bar["end"]): Omit<Bar, "row"> {
  const { key, fence, time: from } = event;
  const hasExpired = until <= time;
  const to = hasExpired ? until : time;
  const bar = { from, to, end: hasExpired ? "expired" : how, key, fence, until, refreshed };
  if (event.phase === "stored") return { kind: "stored", lane: event.endpoint, holder: event.holder, ...bar };
  const { client, safe } = event;
  return { kind: "validity", lane: client, holder: client, ...bar, ...(safe < to && { unsafe: safe }) };
}

/** Gives each bar the first row of its lane in which no other is at that time. */
function withRows(bars: readonly Omit<Bar, "row">[]): Bar[] {
  const ends = new Map<string, number[]>();
  return bars.map((bar) => {
    const busyUntil = ends.get(bar.lane) ?? [];
    ends.set(bar.lane, busyUntil);
    const free = busyUntil.findIndex((time) => time <= bar.from);
    const row = free < 0 ? busyUntil.length : free;
    busyUntil[row] = bar.end === "open" ? Number.POSITIVE_INFINITY : bar.to;
    return { ...bar, row };
  });
}
