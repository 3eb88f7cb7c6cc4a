import type { Bar, LaneIndex, Span } from "./shapes.ts";
import type { TimelineEvent } from "./timeline.ts";

/** A bar whose end is not known yet. */
interface OpenBar {
  readonly event: TimelineEvent;
  until: number | undefined;
  safe: number | undefined;
  /** When the last event about it was. */
  since: number;
  readonly refreshed: number[];
  readonly unsafe: Span[];
}

/** A bar without its row. */
export type UnplacedBar = Omit<Bar, "row">;

/**
 * What was stored, and what was valid, over the whole recording.
 *
 * Things stored are told apart by endpoint, key and holder, so that a semaphore may have several; validities by client
 * and key. An event for one that is there already refreshes it, or replaces it if its fence differs. Each ends at its
 * `until` without a further event.
 *
 * @param end Where bars end that go on.
 */
export function barsOf(events: readonly TimelineEvent[], index: LaneIndex, end: number): UnplacedBar[] {
  const open = new Map<string, OpenBar>();
  const bars: UnplacedBar[] = [];
  const close = (id: string, time: number, how: Bar["end"]) => {
    const bar = open.get(id);
    open.delete(id);
    const made = bar && finished(bar, time, how, index);
    if (made) bars.push(made);
  };
  for (const event of events) {
    for (const id of idsOf(event, open)) {
      const there = open.get(id);
      const expired = there?.until !== undefined && there.until <= event.time;
      const ends = event.phase === "removed" || event.phase === "ended";
      if (expired) close(id, event.time, "expired");
      else if (ends) close(id, event.time, "removed");
      if (ends) continue;
      if (there && !expired && sameFence(there.event, event)) {
        refresh(there, event);
      } else {
        close(id, event.time, "replaced");
        const { until, safe, time } = event;
        open.set(id, { event, until, safe, since: time, refreshed: [], unsafe: [] });
      }
    }
  }
  for (const id of [...open.keys()]) close(id, end, "open");
  return bars.sort((a, b) => a.from - b.from);
}

/** The bars that an event is about: one, or all of the key if `removed` does not say whose. */
function idsOf(event: TimelineEvent, open: ReadonlyMap<string, OpenBar>): readonly string[] {
  const { phase, client, endpoint, key, holder } = event;
  if (phase === "valid" || phase === "ended") return [`valid\n${client}\n${key}`];
  if (phase !== "stored" && phase !== "removed") return [];
  const ofKey = `stored\n${endpoint}\n${key}\n`;
  if (phase === "stored" || holder !== undefined) return [`${ofKey}${holder}`];
  return [...open.keys()].filter((id) => id.startsWith(ofKey));
}

const sameFence = (one: TimelineEvent, other: TimelineEvent): boolean =>
  one.fence === other.fence || one.fence === undefined || other.fence === undefined;

function refresh(bar: OpenBar, { time, until, safe }: TimelineEvent): void {
  if (bar.safe !== undefined && bar.safe < time) bar.unsafe.push({ from: bar.safe, to: time });
  bar.until = until;
  bar.safe = safe;
  bar.since = time;
  bar.refreshed.push(time);
}

function finished(bar: OpenBar, time: number, how: Bar["end"], index: LaneIndex): UnplacedBar | undefined {
  const { event, until, safe } = bar;
  const expired = until !== undefined && until <= time;
  const to = expired ? Math.max(until, event.time) : Math.max(time, event.time);
  const validity = event.phase === "valid";
  const lane = validity ? index.client(event.client) : index.endpoint(event.endpoint);
  if (lane === -1) return undefined;
  const last = safe !== undefined && safe < to ? [{ from: Math.max(safe, bar.since), to }] : [];
  return {
    kind: validity ? "validity" : "stored",
    lane,
    from: event.time,
    to,
    end: expired ? "expired" : how,
    key: event.key ?? "",
    holder: index.client(validity ? event.client : (event.holder ?? event.client)),
    fence: event.fence,
    until,
    refreshed: bar.refreshed,
    unsafe: [...bar.unsafe, ...last],
  };
}

/** Gives each bar a row of its lane in which no other is at that time: the row of its key, if that is free. */
export function fillRows(unplaced: readonly UnplacedBar[]): { bars: Bar[]; rows: number[] } {
  const ends: number[][] = [];
  const usual = new Map<string, number>();
  const bars = unplaced.map((bar): Bar => {
    ends[bar.lane] ??= [];
    const busyUntil = ends[bar.lane]!;
    const id = `${bar.lane}\n${bar.key}`;
    const free = (row: number) => (busyUntil[row] ?? Number.NEGATIVE_INFINITY) <= bar.from;
    let row = usual.get(id) ?? 0;
    if (!free(row)) {
      row = 0;
      while (!free(row)) row += 1;
    }
    usual.set(id, row);
    busyUntil[row] = bar.end === "open" ? Number.POSITIVE_INFINITY : bar.to;
    return { ...bar, row };
  });
  return { bars, rows: Array.from(ends, (rows) => rows?.length ?? 0) };
}
