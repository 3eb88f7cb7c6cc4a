import { type Dialect, Redlock } from "../../index.ts";
import { failureOf } from "../failure.ts";
import { duration } from "../text.ts";
import { type Clock, probeTtl, type Question, type Seen, type SeenByNeed, type Session } from "./session.ts";
import { steps } from "./steps.ts";

// What doctor asks without --conformance. What the answers mean is in advice.ts.

/** How many times the clock is read. */
const samples = 5;

/** A clock that is further away, in ms, is worth a warning. */
export const maxClockDistance = 1_000;

const whereReachable = ({ rest }: SeenByNeed) => rest?.works === true;

/** All questions, in their order. */
export const questions: Readonly<Record<string, Question>> = {
  rest: { ask: steps(() => [{ send: ["PING"], reply: "PONG", when: "PING" }]), isAsked: () => true },
  token: {
    ask: steps((session) => [{ send: ["SET", session.key("token"), "v", "PX", probeTtl] }]),
    isAsked: whereReachable,
  },
  database: { ask: askDatabase },
  clock: { ask: askClock, isAsked: whereReachable },
  native: {
    ask: steps((session) => {
      const key = session.key("native");
      return [
        { send: ["SET", key, "v2", "IFEQ", "v1", "PX", probeTtl] },
        { send: ["DELEX", key, "IFEQ", "v1"] },
      ];
    }),
  },
  flag: {
    // As Upstash's own packages send it.
    ask: steps((session) => [
      { send: ["EVAL", "#!lua flags=allow-key-locking\nreturn 1", 1, session.key("flag")] },
    ]),
    isAsked: ({ native }) => native?.works === true,
  },
  scripts: { ask: askScripts },
};

/** Every endpoint writes the same key: two that are one database meet there. */
async function askDatabase(session: Session): Promise<Seen> {
  const { number } = session.place;
  const key = session.key("database", "all");
  const reply = await session.ask(["SET", key, number, "NX", "PX", probeTtl]);
  if (reply === "OK") return { works: true };
  const first = await session.ask(["GET", key]);
  return { works: false, found: `it is the same database as endpoint ${first}` };
}

/** Acquires and releases a lock with a fence at this endpoint alone: the library's own script, as the program sends it. */
async function askScripts({ endpoint, dialect, seen, place, settings }: Session): Promise<Seen> {
  const { prefix, timeout, id } = settings;
  const usable = isUsable(dialect, seen) ? endpoint : { ...endpoint, dialect: bestDialect(seen) };
  const redlock = new Redlock({ endpoints: [usable], prefix, timeout });
  const options = { fencing: true, ttl: 2 * timeout, fenceRetention: 2 * timeout, wait: 0 } as const;
  const lock = await redlock.acquire(`doctor:${id}:${place.number}`, options);
  await lock.release();
  return { works: true };
}

/** The dialect with which the server does most at the least cost. */
export function bestDialect({ native, flag }: SeenByNeed): Dialect {
  if (!native?.works) return "redis";
  return flag?.works ? "upstash" : "redis-8.4";
}

/** Whether a dialect has no command that the server refuses. */
export function isUsable(dialect: Dialect | undefined, { native, flag }: SeenByNeed): boolean {
  return dialect === "redis" || (native?.works === true && (dialect === "redis-8.4" || flag?.works === true));
}

/** The round trip, and the clock from the fastest of the replies. */
export async function askClock(session: Session): Promise<Seen> {
  const { runtime } = session;
  const readings: { readonly took: number; readonly ahead: number }[] = [];
  for (let sample = 0; sample < samples; sample += 1) {
    const sentAt = runtime.now();
    const { reply, at } = await session.askTimed(["TIME"]).catch((error) => {
      failureOf(error);
      return { reply: undefined, at: { from: 0, to: 0 } };
    });
    const took = at.to - at.from;
    const [seconds, micros] = Array.isArray(reply) ? reply.map(Number) : [];
    if (seconds === undefined || micros === undefined || !Number.isFinite(seconds + micros)) break;
    readings.push({ took, ahead: seconds * 1_000 + micros / 1_000 - (sentAt + took / 2) });
  }
  readings.sort((a, b) => a.took - b.took);
  const [fastest] = readings;
  if (!fastest) return {};
  const roundTrip = Math.round(readings[Math.floor(readings.length / 2)]!.took * 10) / 10;
  // The wall clock counts whole milliseconds.
  const clock = { ahead: Math.round(fastest.ahead), within: Math.ceil(fastest.took / 2) + 1 };
  return { works: true, roundTrip, clock };
}

/** Whether a clock is, as far as can be told, no further away than it may be. */
export function isNear({ ahead, within }: Clock): boolean {
  return Math.abs(ahead) - within <= maxClockDistance;
}

/** How far a clock is away, for people. */
export function clockText({ ahead, within }: Clock): string {
  if (Math.abs(ahead) <= within) return `equal (± ${duration(within)})`;
  return `${duration(Math.abs(ahead))} ${ahead > 0 ? "ahead" : "behind"} (± ${duration(within)})`;
}
