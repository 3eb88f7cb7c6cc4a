import type { Dialect } from "../../index.ts";
import * as commands from "./ask-commands.ts";
import * as scripts from "./ask-scripts.ts";
import * as traffic from "./ask-traffic.ts";
import type { Question, Seen, SeenByNeed } from "./session.ts";

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
  /** What happens instead, after what was seen; undefined: nothing else. */
  readonly instead?: (seen: Seen) => Consequence | undefined;
}

const givenTwice = "a lock would be given twice";
const error = (without: string): Consequence => ({ level: "error", without });
const warning = (without: string): Consequence => ({ level: "warning", without });
const note = (without: string): Consequence => ({ level: "note", without });
const afterEval = (seen: SeenByNeed) => seen.eval?.works === true;

/** Whether this is what was found, or the error. */
const says = ({ failure, found = "" }: Seen, pattern: RegExp) => pattern.test(failure?.message ?? found);

const native: Pick<Requirement, keyof Consequence | "dialects"> = {
  ...note("the endpoint works with the dialect redis only"),
  dialects: ["redis-8.4", "upstash"],
};

/** All needs. */
export const requirements: Readonly<Record<string, Requirement>> = {
  nx: { label: "SET … NX PX", ...error(`${givenTwice}, or never end`), ask: commands.askNx },
  "nx-get": {
    label: "SET … NX GET PX",
    ...note("idempotent runs and waiters send a script, which costs more commands"),
    ask: commands.askNxGet,
    // The library knows what this error says.
    instead: (seen) =>
      says(seen, /syntax error/) ? undefined : error("idempotent runs and waiters fail, or run twice"),
  },
  ifeq: { label: "SET … IFEQ PX", ...native, ask: commands.askIfEqual },
  delex: { label: "DELEX … IFEQ", ...native, ask: commands.askDelex },
  eval: {
    label: "EVAL",
    ...error("no fence, no several resources, no inspect and free; in the dialect redis no release"),
    ask: scripts.askEval,
    instead: ({ works }) => (works === false ? error(`${givenTwice}, or not be released`) : undefined),
  },
  evalsha: {
    label: "EVALSHA, NOSCRIPT",
    ...error("scripts fail: after the error NOSCRIPT, and no other, the library sends the text"),
    ask: scripts.askEvalsha,
    isAsked: afterEval,
    instead: (seen) =>
      says(seen, /NOSCRIPT/) ? warning("every script is sent twice, the second time by its text") : undefined,
  },
  "lua-flag": {
    label: "#!lua flags=allow-…",
    ...note("the endpoint does not work with the dialect upstash"),
    dialects: ["upstash"],
    ask: scripts.askFlag,
    isAsked: afterEval,
  },
  replies: {
    label: "reply of its request",
    ...error("a client believes the reply of another one"),
    ask: traffic.askReplies,
  },
  pipeline: {
    label: "/pipeline",
    ...warning("calls of one turn are a request each"),
    ask: traffic.askPipeline,
    instead: (seen) =>
      says(seen, /one command per request/) ? undefined : error("calls of one turn fail together"),
  },
  unchanged: {
    label: "keys, values unchanged",
    ...error(
      "two names would be one lock; a release does not find its value; a replayed result is another one",
    ),
    ask: commands.askUnchanged,
  },
  result: {
    label: "result of 1 MB",
    ...warning("larger results are not stored, or cannot be replayed; larger requests fail"),
    ask: traffic.askResult,
    instead: (seen) => (says(seen, /are stored/) ? error("larger results are replayed cut") : undefined),
  },
  kept: {
    label: "writes stay",
    ...error(`${givenTwice}, and an effect would happen twice`),
    ask: commands.askKept,
  },
  eviction: {
    label: "nothing is evicted",
    ...warning("when memory is full, locks, fences and results vanish: set maxmemory-policy noeviction"),
    ask: traffic.askEviction,
  },
  // Last: some gateways answer nothing any more after it.
  subscribe: {
    label: "/subscribe",
    ...note("waiters poll: wakeUp has no effect"),
    ask: traffic.askStream,
    instead: (seen) =>
      says(seen, /refuses all/)
        ? error("wakeUp breaks it for everybody: do not set it, and restart the gateway")
        : undefined,
  },
};
