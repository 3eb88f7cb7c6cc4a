import type { TimelineEvent } from "./picture/timeline.ts";

/** A sentence about one event of a scene. A scene that has no such event does not show it. */
export interface Caption {
  /** Members that the event has. */
  readonly at: Partial<TimelineEvent>;
  /** Which one of such events after the event of the caption before. Default 1: the next. */
  readonly nth?: number;
  /** What it says, from the event and those before it. */
  says(event: TimelineEvent, before: readonly TimelineEvent[]): string;
}

/** A moment of a scene, and what is to be seen there. */
export interface Step {
  /** ms of the world: whole, so that a link can name it, and not before the event. */
  readonly time: number;
  readonly text: string;
}

/** The captions of what did happen. */
export function stepsOf(captions: readonly Caption[], events: readonly TimelineEvent[]): Step[] {
  let last = -1;
  return captions.flatMap(({ at, nth = 1, says }) => {
    const found = events.flatMap((event, index) => (index > last && hasAll(event, at) ? [index] : []));
    const index = found[nth - 1];
    if (index === undefined) return [];
    last = index;
    const event = events[index]!;
    return [{ time: Math.ceil(event.time), text: says(event, events.slice(0, index)) }];
  });
}

/** The last of these events that has all these members. */
export function lastOf(events: readonly TimelineEvent[], at: Partial<TimelineEvent>): TimelineEvent {
  return events.filter((event) => hasAll(event, at)).at(-1)!;
}

function hasAll(event: TimelineEvent, at: Partial<TimelineEvent>): boolean {
  return Object.entries(at).every(([name, value]) => Reflect.get(event, name) === value);
}
