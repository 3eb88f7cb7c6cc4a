import type { Phase, Timeline, TimelineEvent } from "./timeline.ts";

const phases: Readonly<Record<Phase, true>> = {
  called: true,
  returned: true,
  sent: true,
  executed: true,
  answered: true,
  lost: true,
  stored: true,
  removed: true,
  valid: true,
  ended: true,
  fault: true,
  healed: true,
  violated: true,
};

const texts = [
  "client",
  "endpoint",
  "operation",
  "call",
  "request",
  "key",
  "holder",
  "name",
  "detail",
] as const;
const numbers = ["fence", "validity", "until", "safe"] as const;
const choices = {
  outcome: ["granted", "held", "gone", "error"],
  what: ["request", "reply"],
} as const;

/**
 * Reads a timeline from JSON, and puts its events in the order of their times.
 *
 * @throws SyntaxError - If it is not JSON.
 * @throws TypeError - If it is not a timeline; the message says which part is wrong.
 */
export function parseTimeline(json: string): Timeline {
  const timeline = objectOf(JSON.parse(json), "a timeline");
  must(timeline.version === 1, "the timeline's version must be 1");
  must(typeof timeline.title === "string", "the timeline needs a title");
  for (const member of ["clients", "endpoints"] as const) {
    const names = timeline[member];
    must(Array.isArray(names) && names.every((name) => typeof name === "string"), `${member} must be names`);
  }
  for (const member of ["from", "to"] as const) {
    must(
      timeline[member] === undefined || Number.isFinite(timeline[member]),
      `${member} must be a number of ms`,
    );
  }
  must(Array.isArray(timeline.events), "events must be a list");
  const events = (timeline.events as unknown[]).map(eventOf);
  return { ...(timeline as unknown as Timeline), events: events.sort((a, b) => a.time - b.time) };
}

function eventOf(value: unknown, at: number): TimelineEvent {
  const where = `event ${at + 1}`;
  const event = objectOf(value, where);
  must(Number.isFinite(event.time), `${where}: time must be a number of ms`);
  must(
    typeof event.phase === "string" && Object.hasOwn(phases, event.phase),
    `${where}: ${event.phase} is not a phase`,
  );
  for (const member of texts) {
    must(
      event[member] === undefined || typeof event[member] === "string",
      `${where}: ${member} must be a text`,
    );
  }
  for (const member of numbers) {
    must(
      event[member] === undefined || Number.isFinite(event[member]),
      `${where}: ${member} must be a number`,
    );
  }
  const chosen = (name: keyof typeof choices, value: unknown) => {
    const known: readonly unknown[] = choices[name];
    must(known.includes(value), `${where}: ${name} must be one of ${choices[name].join(", ")}`);
  };
  if (event.outcome !== undefined) chosen("outcome", event.outcome);
  if (event.what !== undefined) chosen("what", event.what);
  if (event.votes !== undefined) {
    for (const vote of Object.values(objectOf(event.votes, `${where}: votes`))) chosen("outcome", vote);
  }
  return event as unknown as TimelineEvent;
}

function objectOf(value: unknown, what: string): Record<string, unknown> {
  must(typeof value === "object" && value !== null && !Array.isArray(value), `${what} must be an object`);
  return value as Record<string, unknown>;
}

function must(condition: boolean, message: string): void {
  if (!condition) throw new TypeError(message);
}
