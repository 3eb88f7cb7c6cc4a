import * as ask from "./ask.ts";
import type { Question } from "./session.ts";

// All that doctor asks, in its order, a row each: what a server needs to have, how to find out, and what to do without it.

/** `error`: the endpoint does not work. `warning`: it works, but not well. `note`: to know. */
export type Level = "error" | "warning" | "note";

/** What to do without something, and how bad that is. */
interface Remedy {
  readonly level: Level;
  readonly fix: string;
}

/** Something that the library needs of a server. If it has no remedy, there are dialects that do without it. */
export interface Requirement extends Question, Partial<Remedy> {
  readonly label: string;
  /** Whether it is asked without `--conformance`, too. */
  readonly isQuick?: boolean;
  /** The remedy if the finding says this. */
  readonly instead?: Remedy & { readonly found: RegExp };
}

/** The questions that come first. remedies.ts says what to do about each failure. */
export const questions: Readonly<Record<string, Question>> = {
  rest: { ask: ask.askRest, after: null },
  token: { ask: ask.askToken, after: "rest" },
  database: { ask: ask.askDatabase },
  clock: { ask: ask.askClock, after: "rest" },
};

/** All that the library needs of a server, besides a user or token that may write. */
export const requirements: Readonly<Record<string, Requirement>> = {
  // First: a script looks at the stored value, if scripts work.
  eval: {
    label: "EVAL",
    ask: ask.askEval,
    isQuick: true,
    level: "error",
    fix: "allow EVAL, EVALSHA and all commands in scripts: fences, several resources, inspect and free need them, and a release in the dialect redis",
  },
  evalsha: {
    label: "EVALSHA, NOSCRIPT",
    ask: ask.askEvalsha,
    isQuick: true,
    after: "eval",
    level: "error",
    fix: "scripts fail here: let it answer NOSCRIPT, and no other error, to a script that it does not know",
    instead: { found: /remembered/, level: "warning", fix: "let it remember scripts, or each is sent twice" },
  },
  nx: {
    label: "SET … NX PX",
    ask: ask.askClaim,
    level: "error",
    fix: "use another server, because a lock would be given twice here, or never end",
  },
  native: {
    label: "SET … IFEQ, DELEX",
    ask: ask.askNative,
    isQuick: true,
  },
  flag: {
    label: "#!lua flags=allow-…",
    ask: ask.askFlag,
    isQuick: true,
    after: "eval",
  },
  pipeline: {
    label: "several at once",
    ask: ask.askPipeline,
    level: "error",
    fix: "calls of one turn fail together: if it has no /pipeline, set pipelines: false",
  },
  result: {
    label: "result of 1 MB",
    ask: ask.askResult,
    level: "warning",
    fix: "set a smaller maxResult, because larger results are not stored, or cannot be replayed",
    instead: { found: /another value/, level: "error", fix: "set a smaller maxResult, because it cuts them" },
  },
  eviction: {
    label: "nothing is evicted",
    ask: ask.askEviction,
    level: "warning",
    fix: "set maxmemory-policy noeviction: else locks, fences and results vanish when memory is full",
  },
  // Last: some gateways answer nothing any more after it.
  subscribe: {
    label: "subscriptions",
    ask: ask.askStream,
    level: "note",
    fix: "without them waiters poll, and wakeUp has no effect",
    instead: { found: /refuses all/, level: "error", fix: "do not set wakeUp, and restart the gateway" },
  },
};

/** All that doctor asks, in its order. */
export function questionsOf(isConformance: boolean): Readonly<Record<string, Question>> {
  const needs = Object.entries(requirements).filter(([, { isQuick }]) => isConformance || isQuick);
  return { ...questions, ...Object.fromEntries(needs) };
}
