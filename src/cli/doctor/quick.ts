import type { Dialect } from "../../index.ts";
import { failureOf } from "../failure.ts";
import { duration } from "../text.ts";
import { requirements } from "./requirements.ts";
import { type Clock, probeTtl, type Question, type Seen, type SeenByNeed, type Session } from "./session.ts";
import { steps } from "./steps.ts";

// What doctor asks without --conformance. What the answers mean is in advice.ts.

/** How many times the clock is read. */
const samples = 5;

/** A clock that is further away, in ms, is worth a warning. */
const maxClockDistance = 1_000;

const whereReachable = ({ rest }: SeenByNeed) => rest?.works === true;

/** What is asked here as well: whether scripts are allowed, and which dialect the server has. */
const shared = ["eval", "evalsha", "ifeq", "delex", "lua-flag"];

/** All questions, in their order. */
export const questions: Readonly<Record<string, Question>> = {
  rest: { ask: steps(() => [{ send: ["PING"], reply: "PONG", when: "PING" }]), isAsked: () => true },
  token: {
    ask: steps((session) => [{ send: ["SET", session.key("token"), "v", "PX", probeTtl] }]),
    isAsked: whereReachable,
  },
  database: { ask: askDatabase },
  clock: { ask: askClock, isAsked: whereReachable },
  ...Object.fromEntries(shared.map((need) => [need, requirements[need]!])),
};

/** Every endpoint writes the same key: two that are one database meet there. */
async function askDatabase(session: Session): Promise<Seen> {
  const { number } = session.place;
  const key = session.key("database", "all");
  const reply = await session.ask(["SET", key, number, "NX", "PX", probeTtl]);
  if (reply === "OK") return { works: true };
  const first = Number(await session.ask(["GET", key]));
  if (first === 0 || first === number) return { works: true };
  return { works: false, found: `it is the same database as endpoint ${first}` };
}

const hasNative = ({ ifeq, delex }: SeenByNeed) => ifeq?.works === true && delex?.works === true;
const hasFlag = ({ "lua-flag": flag }: SeenByNeed) => flag?.works === true;

/** The dialect with which the server does most at the least cost. */
export function bestDialect(seen: SeenByNeed): Dialect {
  if (!hasNative(seen)) return "redis";
  return hasFlag(seen) ? "upstash" : "redis-8.4";
}

/** Whether a dialect has no command that the server refuses. */
export function isUsable(dialect: Dialect | undefined, seen: SeenByNeed): boolean {
  return dialect === "redis" || (hasNative(seen) && (dialect === "redis-8.4" || hasFlag(seen)));
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
