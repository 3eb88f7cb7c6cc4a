import type { Timeline, TimelineEvent } from "./timeline.ts";

// Which part of the time a mounted picture shows: no pixels, no page.

export interface ViewRange {
  readonly from: number;
  readonly to: number;
}

/** The part in view. At the end of a live recording it goes along with it. */
export class ViewState {
  #whole: ViewRange;
  #range: ViewRange;

  constructor(whole: ViewRange) {
    this.#whole = whole;
    this.#range = whole;
  }

  get range(): ViewRange {
    return this.#range;
  }

  /** Moves by a part of what is in view: 0.2 is a fifth to the right. */
  pan(part: number): void {
    const { from, to } = this.#range;
    this.#show(from + (to - from) * part, to - from);
  }

  /** Shows less of the time (a factor over 1), or more of it, around a time. */
  zoom(factor: number, around?: number): void {
    const { from, to } = this.#range;
    const middle = Math.min(to, Math.max(from, around ?? (from + to) / 2));
    const length = (to - from) / factor;
    // Less than this has no meaning: recorders' clocks have no finer steps.
    if (factor > 1 && length < 0.5) return;
    this.#show(middle - (middle - from) / factor, length);
  }

  /** Shows everything again. */
  all(): void {
    this.#range = this.#whole;
  }

  /** Brings a time into view. */
  include(time: number): void {
    const { from, to } = this.#range;
    const margin = (to - from) * 0.1;
    if (time < from || time > to - margin) this.#show(time - margin, to - from);
  }

  /** The recording has become longer, or has lost its beginning. */
  grow(whole: ViewRange): void {
    const before = this.#whole;
    const { from, to } = this.#range;
    this.#whole = whole;
    if (from === before.from && to === before.to) this.#range = whole;
    else if (to === before.to) this.#show(whole.to - (to - from), to - from);
    else this.#show(from, to - from);
  }

  /** Shows a part, as far as there is a recording. */
  #show(from: number, length: number): void {
    const { from: first, to: last } = this.#whole;
    if (length >= last - first) {
      this.#range = this.#whole;
      return;
    }
    // Where a view touches an end it has exactly its time: `grow` compares them.
    if (from + length >= last) this.#range = { from: last - length, to: last };
    else this.#range = { from: Math.max(from, first), to: Math.max(from, first) + length };
  }
}

/**
 * A live recording with further events, which may be late.
 *
 * @param now Until when the recording goes now.
 * @param latest ms: what is older and has ended is forgotten.
 */
export function appended(
  timeline: Timeline,
  events: readonly TimelineEvent[],
  { now, latest }: { readonly now?: number | undefined; readonly latest?: number | undefined },
): Timeline {
  const last = timeline.events.at(-1)?.time ?? Number.NEGATIVE_INFINITY;
  const all = [...timeline.events, ...events];
  const inOrder = events.every(({ time }, at) => time >= (events[at - 1]?.time ?? last));
  if (!inOrder) all.sort((a, b) => a.time - b.time);
  const end = Math.max(now ?? Number.NEGATIVE_INFINITY, all.at(-1)?.time ?? 0);
  // Time 0 stays where it is when the first events are forgotten.
  const from = timeline.from ?? all[0]?.time ?? end;
  const kept = latest === undefined ? all : recent(all, end - latest);
  return { ...timeline, from, to: Math.max(end, timeline.to ?? end), events: kept };
}

/** What is younger than a time, and what began before and goes on: values stored, validities, faults. */
function recent(events: readonly TimelineEvent[], time: number): TimelineEvent[] {
  if ((events[0]?.time ?? time) >= time) return [...events];
  const lasting = new Map<string, TimelineEvent>();
  const younger: TimelineEvent[] = [];
  for (const event of events) {
    if (event.time >= time) {
      younger.push(event);
      continue;
    }
    const { phase, client, endpoint, key, holder, name } = event;
    const id = (kind: string) => [kind, client, endpoint, key, holder, name].join("\n");
    if (phase === "stored" || phase === "valid" || phase === "fault") lasting.set(id(phase), event);
    if (phase === "ended") lasting.delete(id("valid"));
    if (phase === "healed") lasting.delete(id("fault"));
    if (phase !== "removed") continue;
    for (const [other, { phase: kind, ...stored }] of lasting) {
      const same = stored.endpoint === endpoint && stored.key === key;
      if (kind === "stored" && same && (holder === undefined || stored.holder === holder))
        lasting.delete(other);
    }
  }
  const left = [...lasting.values()].filter(({ until }) => until === undefined || until > time);
  return [...left.sort((a, b) => a.time - b.time), ...younger];
}
