import type { Dialect } from "../../index.ts";
import * as ask from "./ask.ts";
import type { Question } from "./session.ts";

// All that doctor asks, in its order, a row each. A need is a sentence about the server, how to find out, and what happens,
// or what to do, without it.

/** `error`: the endpoint does not work. `warning`: it works, but not well. `note`: to know. */
export type Level = "error" | "warning" | "note";

/** What happens without something, and how bad that is. */
export interface Consequence {
  readonly level: Level;
  readonly without: string;
}

/** Something that the library needs of a server. */
export interface Requirement extends Consequence, Question {
  readonly label: string;
  /** Whether it is asked without `--conformance`, too. */
  readonly isQuick?: boolean;
  /** The dialects in which its absence is an error. */
  readonly dialects?: readonly Dialect[];
  /** The consequence if the finding, or the error, says this. */
  readonly instead?: readonly [found: RegExp, level: Level, without: string];
}

/** The questions that come first. remedies.ts says what to do about each failure. */
export const questions: Readonly<Record<string, Question>> = {
  rest: { ask: ask.askRest, after: null },
  token: { ask: ask.askToken, after: "rest" },
  database: { ask: ask.askDatabase },
  clock: { ask: ask.askClock, after: "rest" },
};

type Row = (label: string, without: string, ask: Question["ask"], more?: Partial<Requirement>) => Requirement;
const rowOf =
  (level: Level): Row =>
  (label, without, asks, more) => ({ label, level, without, ask: asks, ...more });
const [error, warning, note] = [rowOf("error"), rowOf("warning"), rowOf("note")];

/** All that the library needs of a server, besides a user or token that may write. */
export const requirements: Readonly<Record<string, Requirement>> = {
  // First: a script looks at the stored value, if scripts work.
  eval: error(
    "EVAL",
    "no fence, no several resources, no inspect and free; in the dialect redis no release. Allow EVAL, EVALSHA and all commands in scripts",
    ask.askEval,
    { isQuick: true },
  ),
  evalsha: error(
    "EVALSHA, NOSCRIPT",
    "scripts fail: after the error NOSCRIPT, and no other, the library sends the text",
    ask.askEvalsha,
    {
      isQuick: true,
      after: "eval",
      instead: [/remembered/, "warning", "every script is sent twice, the second time by its text"],
    },
  ),
  nx: error("SET … NX PX", "a lock would be given twice, or never end", ask.askClaim),
  native: note("SET … IFEQ, DELEX", "the endpoint works with the dialect redis only", ask.askNative, {
    isQuick: true,
    dialects: ["redis-8.4", "upstash"],
  }),
  flag: note("#!lua flags=allow-…", "the endpoint does not work with the dialect upstash", ask.askFlag, {
    isQuick: true,
    dialects: ["upstash"],
    after: "eval",
  }),
  pipeline: error(
    "several at once",
    "calls of one turn fail together; if it has no /pipeline, set pipelines: false",
    ask.askPipeline,
  ),
  result: warning(
    "result of 1 MB",
    "larger results are not stored, or cannot be replayed; larger requests fail",
    ask.askResult,
    { instead: [/are stored/, "error", "larger results are replayed cut"] },
  ),
  eviction: warning(
    "nothing is evicted",
    "when memory is full, locks, fences and results vanish: set maxmemory-policy noeviction",
    ask.askEviction,
  ),
  // Last: some gateways answer nothing any more after it.
  subscribe: note("subscriptions", "waiters poll: wakeUp has no effect", ask.askStream, {
    instead: [
      /refuses all/,
      "error",
      "wakeUp breaks it for everybody: do not set it, and restart the gateway",
    ],
  }),
};

/** All that doctor asks, in its order. */
export function questionsOf(isConformance: boolean): Readonly<Record<string, Question>> {
  const needs = Object.entries(requirements).filter(([, { isQuick }]) => isConformance || isQuick);
  return { ...questions, ...Object.fromEntries(needs) };
}
