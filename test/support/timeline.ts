import type { Outcome, Timeline, TimelineEvent } from "../../playground/picture/timeline.ts";

const key = "orders/17";

/** What happens to one request of {@link sampleTimeline}; times in ms. */
interface Request {
  readonly client: string;
  readonly endpoint: string;
  readonly operation: string;
  readonly sent: number;
  readonly executed?: readonly number[];
  readonly outcome?: Outcome;
  readonly answered?: number;
  readonly lost?: { readonly time: number; readonly what: "request" | "reply" };
  readonly detail?: string;
}

let requests = 0;

function request(one: Request): TimelineEvent[] {
  requests += 1;
  const {
    client,
    endpoint,
    operation,
    sent,
    executed = [],
    answered,
    lost,
    detail,
    outcome = "granted",
  } = one;
  const about = { client, endpoint, operation, request: `${requests}`, key, ...(detail && { detail }) };
  const events: TimelineEvent[] = [{ ...about, phase: "sent", time: sent }];
  for (const time of executed) events.push({ ...about, phase: "executed", time, outcome });
  if (answered !== undefined) events.push({ ...about, phase: "answered", time: answered, outcome });
  if (lost) events.push({ ...about, phase: "lost", ...lost });
  return events;
}

function call(
  client: string,
  operation: string,
  [from, to]: [number, number],
  returned: Partial<TimelineEvent>,
): TimelineEvent[] {
  const about = { client, operation, key, call: `${client}-${from}` };
  return [
    { ...about, phase: "called", time: from },
    { ...about, phase: "returned", time: to, ...returned },
  ];
}

const [one, two, three] = ["redis-1", "redis-2", "redis-3"] as const;

/** A acquires; its third reply is lost. B is refused, once with a request that arrives twice and one that is late. */
function firstHolder(): TimelineEvent[] {
  const a = { client: "A", operation: "acquire" };
  const b = { client: "B", operation: "acquire", outcome: "held" } as const;
  return [
    ...call("A", "acquire", [4, 24], {
      outcome: "granted",
      votes: { [one]: "granted", [two]: "granted", [three]: "error" },
      fence: 7,
      validity: 180,
    }),
    ...request({ ...a, endpoint: one, sent: 4, executed: [12], answered: 20 }),
    ...request({ ...a, endpoint: two, sent: 4, executed: [14], answered: 24 }),
    ...request({ ...a, endpoint: three, sent: 4, executed: [13], lost: { time: 20, what: "reply" } }),
    ...[one, two, three].map(
      (endpoint, at): TimelineEvent => ({
        time: [12, 14, 13][at]!,
        phase: "stored",
        endpoint,
        key,
        holder: "A",
        fence: 7,
        until: [212, 214, 213][at]!,
      }),
    ),
    { time: 24, phase: "valid", client: "A", key, fence: 7, until: 204, safe: 184 },
    ...call("B", "acquire", [50, 71], {
      outcome: "held",
      votes: { [one]: "held", [two]: "held", [three]: "held" },
    }),
    ...request({ ...b, endpoint: one, sent: 50, executed: [58], answered: 66 }),
    ...request({ ...b, endpoint: two, sent: 50, executed: [60], answered: 71 }),
    ...request({ ...b, endpoint: three, sent: 50, executed: [59], answered: 69 }),
    ...call("B", "acquire", [118, 140], {
      outcome: "held",
      votes: { [one]: "held", [two]: "held", [three]: "error" },
    }),
    ...request({ ...b, endpoint: one, sent: 118, executed: [127], answered: 136 }),
    ...request({ ...b, endpoint: two, sent: 118, executed: [128, 152], answered: 140 }),
    ...request({ ...b, endpoint: three, sent: 118, executed: [186], answered: 196 }),
  ];
}

/** A is paused until its lock has expired; B takes over although redis-3 is down; A's late write is stopped. */
function secondHolder(): TimelineEvent[] {
  const acquire = { client: "B", operation: "acquire" };
  const release = { client: "B", operation: "release" };
  const about = { key, endpoint: "database", holder: "B" };
  return [
    { time: 148, phase: "fault", client: "A", name: "paused" },
    { time: 330, phase: "healed", client: "A", name: "paused" },
    { time: 222, phase: "fault", endpoint: three, name: "killed" },
    { time: 430, phase: "healed", endpoint: three, name: "killed" },
    ...call("B", "acquire", [236, 258], {
      outcome: "granted",
      votes: { [one]: "granted", [two]: "granted", [three]: "error" },
      fence: 8,
      validity: 178,
    }),
    ...request({ ...acquire, endpoint: one, sent: 236, executed: [245], answered: 253 }),
    ...request({ ...acquire, endpoint: two, sent: 236, executed: [246], answered: 258 }),
    ...request({ ...acquire, endpoint: three, sent: 236, lost: { time: 246, what: "request" } }),
    { time: 245, phase: "stored", endpoint: one, key, holder: "B", fence: 8, until: 445 },
    { time: 246, phase: "stored", endpoint: two, key, holder: "B", fence: 8, until: 446 },
    { time: 258, phase: "valid", client: "B", key, fence: 8, until: 436, safe: 416 },
    ...call("B", "write", [280, 300], { outcome: "granted" }),
    ...request({
      ...{ client: "B", operation: "write", endpoint: "database", sent: 280 },
      ...{ executed: [290], answered: 300, detail: "its fence 8 is the highest so far" },
    }),
    { ...about, time: 290, phase: "stored", fence: 8 },
    ...call("A", "write", [340, 361], { outcome: "held", detail: "its fence 7 is lower than 8" }),
    ...request({
      ...{ client: "A", operation: "write", endpoint: "database", sent: 340 },
      ...{ executed: [350], answered: 361, outcome: "held", detail: "its fence 7 is lower than 8" },
    }),
    ...call("B", "release", [384, 405], {
      outcome: "granted",
      votes: { [one]: "granted", [two]: "granted", [three]: "error" },
    }),
    ...request({ ...release, endpoint: one, sent: 384, executed: [393], answered: 402 }),
    ...request({ ...release, endpoint: two, sent: 384, executed: [394], answered: 405 }),
    ...request({ ...release, endpoint: three, sent: 384, lost: { time: 394, what: "request" } }),
    { time: 384, phase: "ended", client: "B", key },
    { time: 393, phase: "removed", endpoint: one, key, holder: "B" },
    { time: 394, phase: "removed", endpoint: two, key, holder: "B" },
  ];
}

/** Two contenders, three endpoints and a database: a late writer that is stopped by its fence. */
export const sampleTimeline: Timeline = {
  version: 1,
  title: "A is paused until its lock has expired; B takes over, and A's late write is stopped by its fence",
  clients: ["A", "B"],
  endpoints: [one, two, three, "database"],
  from: 0,
  to: 450,
  events: [...firstHolder(), ...secondHolder()].sort((a, b) => a.time - b.time),
};
