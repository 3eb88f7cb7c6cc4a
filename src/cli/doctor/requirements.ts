import type { Dialect } from "../../index.ts";
import * as data from "./ask-data.ts";
import * as locks from "./ask-locks.ts";
import * as traffic from "./ask-traffic.ts";
import { questions } from "./questions.ts";
import type { Question } from "./session.ts";

// All that the library needs of a server with Upstash's REST API and a token that may write: each need is a row, which is
// asked and shown in this order.

/** `error`: the endpoint does not work. `warning`: it works, but not well. `note`: to know. */
export type Level = "error" | "warning" | "note";

/** What happens without something, and how bad that is. */
export interface Consequence {
  readonly level: Level;
  readonly without: string;
}

/** Something that the library needs, what happens without it, and how to find out. */
export interface Requirement extends Consequence, Question {
  readonly label: string;
  /** The dialects in which its absence is an error. */
  readonly dialects?: readonly Dialect[];
  /** What happens instead where what was found, or the error, says this. */
  readonly instead?: readonly [RegExp, Consequence];
}

const givenTwice = "a lock would be given twice";
const error = (without: string): Consequence => ({ level: "error", without });
const warning = (without: string): Consequence => ({ level: "warning", without });
const note = (without: string): Consequence => ({ level: "note", without });

/** All needs. */
export const requirements: Readonly<Record<string, Requirement>> = {
  nx: { label: "SET … NX PX", ...error(`${givenTwice}, or never end`), ask: locks.askClaim },
  native: {
    label: "SET … IFEQ, DELEX",
    ...note("the endpoint works with the dialect redis only"),
    dialects: ["redis-8.4", "upstash"],
    ask: locks.askNative,
  },
  eval: {
    label: "EVAL",
    ...error(
      "no fence, no several resources, no inspect and free; in the dialect redis no release. The token must allow EVAL, EVALSHA and all commands in scripts",
    ),
    ask: locks.askEval,
  },
  evalsha: {
    label: "EVALSHA, NOSCRIPT",
    ...error("scripts fail: after the error NOSCRIPT, and no other, the library sends the text"),
    ask: locks.askEvalsha,
    after: "eval",
    instead: [/NOSCRIPT/, warning("every script is sent twice, the second time by its text")],
  },
  flag: {
    label: "#!lua flags=allow-…",
    ...note("the endpoint does not work with the dialect upstash"),
    dialects: ["upstash"],
    ask: locks.askFlag,
    after: "eval",
  },
  replies: {
    label: "reply of its request",
    ...error("a client believes the reply of another one"),
    ask: traffic.askReplies,
  },
  pipeline: {
    label: "/pipeline",
    ...error("calls of one turn fail together; if it has no /pipeline, set pipelines: false"),
    ask: traffic.askPipeline,
  },
  unchanged: {
    label: "keys, values unchanged",
    ...error(
      "two names would be one lock; a release does not find its value; a replayed result is another one",
    ),
    ask: data.askUnchanged,
  },
  result: {
    label: "result of 1 MB",
    ...warning("larger results are not stored, or cannot be replayed; larger requests fail"),
    ask: data.askResult,
    instead: [/are stored/, error("larger results are replayed cut")],
  },
  kept: {
    label: "writes stay",
    ...error(`${givenTwice}, and an effect would happen twice`),
    ask: data.askKept,
  },
  eviction: {
    label: "nothing is evicted",
    ...warning("when memory is full, locks, fences and results vanish: set maxmemory-policy noeviction"),
    ask: data.askEviction,
  },
  // Last: some gateways answer nothing any more after it.
  subscribe: {
    label: "/subscribe",
    ...note("waiters poll: wakeUp has no effect"),
    ask: traffic.askStream,
    instead: [/refuses all/, error("wakeUp breaks it for everybody: do not set it, and restart the gateway")],
  },
};

/** What is asked in any case: which dialect there is, and whether scripts are allowed. */
const quick = ["native", "eval", "evalsha", "flag"];

/** All that doctor asks, in its order. */
export function questionsOf(isConformance: boolean): Readonly<Record<string, Question>> {
  const needs = Object.entries(requirements).filter(([need]) => isConformance || quick.includes(need));
  return { ...questions, ...Object.fromEntries(needs) };
}
