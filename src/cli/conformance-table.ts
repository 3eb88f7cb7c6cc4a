import type { Dialect } from "../index.ts";
import * as commands from "./conformance-commands.ts";
import * as scripts from "./conformance-scripts.ts";
import type { ConformanceSession, Need, Seen, SeenByNeed } from "./conformance-session.ts";
import * as store from "./conformance-store.ts";
import * as traffic from "./conformance-traffic.ts";

// All that the library needs of a server: each need is a row, which is asked and shown in this order.

/** `error`: the endpoint does not work. `warning`: it works, but not well. `note`: to know. */
export type Level = "error" | "warning" | "note";

/** What happens without something, and how bad that is. */
export interface Consequence {
  readonly level: Level;
  readonly without: string;
}

/** Something that the library needs, what happens without it, and how to find out. */
export interface Requirement extends Consequence {
  readonly label: string;
  readonly ask: (session: ConformanceSession) => Promise<Seen>;
  /** Whether it says anything, after what was seen before. Default: yes, where the token may write. */
  readonly isAsked?: (seen: SeenByNeed) => boolean;
  /** What happens instead, after what was seen, in the endpoint's dialect; undefined: nothing else. */
  readonly instead?: (seen: Seen, dialect: Dialect | undefined) => Consequence | undefined;
}

const givenTwice = "a lock would be given twice";
const error = (without: string): Consequence => ({ level: "error", without });
const afterEval = (seen: SeenByNeed) => seen.eval?.works === true;

/** Whether this is what was found, or the error. */
const says = ({ failure, found = "" }: Seen, pattern: RegExp) => pattern.test(failure?.message ?? found);

/** What is sent in no dialect but these. */
const neededBy =
  (dialects: readonly Dialect[], fix: string): NonNullable<Requirement["instead"]> =>
  (_, dialect) =>
    dialect && dialects.includes(dialect)
      ? error(`the dialect ${dialect} needs it: set dialect ${fix}`)
      : undefined;

/** Where the server has it, but does something else. */
const ifWrong =
  (without: string): NonNullable<Requirement["instead"]> =>
  ({ works }) =>
    works === false ? error(without) : undefined;

/** All needs. */
export const requirements: Readonly<Record<Need, Requirement>> = {
  rest: {
    label: "Upstash's REST API",
    ...error("nothing works; doctor without --conformance says what to fix"),
    ask: traffic.askRest,
    isAsked: () => true,
  },
  token: {
    label: "token may write",
    ...error("nothing works; doctor without --conformance says what to fix"),
    ask: traffic.askToken,
    isAsked: ({ rest }) => rest?.works === true,
  },
  nx: {
    label: "SET … NX PX",
    ...error(`${givenTwice}, or never end`),
    ask: commands.askNx,
  },
  "nx-get": {
    label: "SET … NX GET PX",
    level: "note",
    without: "idempotent runs and waiters send a script, which costs more commands",
    ask: commands.askNxGet,
    // The library knows what this error says.
    instead: (seen) =>
      says(seen, /syntax error/) ? undefined : error("idempotent runs and waiters fail, or run twice"),
  },
  ifeq: {
    label: "SET … IFEQ PX",
    level: "note",
    without: "an extension is a script, as in the dialect redis",
    ask: commands.askIfEqual,
    instead: neededBy(["redis-8.4", "upstash"], "redis"),
  },
  delex: {
    label: "DELEX … IFEQ",
    level: "note",
    without: "a release is a script, as in the dialect redis",
    ask: commands.askDelex,
    instead: neededBy(["redis-8.4", "upstash"], "redis"),
  },
  eval: {
    label: "EVAL",
    ...error("no fence, no several resources, no inspect and free; in the dialect redis no release"),
    ask: scripts.askEval,
    instead: ifWrong(`${givenTwice}, or not be released`),
  },
  evalsha: {
    label: "EVALSHA",
    ...error("every script fails"),
    ask: scripts.askEvalsha,
    isAsked: afterEval,
    instead: (seen) =>
      says(seen, /NOSCRIPT/)
        ? { level: "warning", without: "every script is sent twice, the second time by its text" }
        : undefined,
  },
  noscript: {
    label: "error NOSCRIPT",
    ...error("a script fails until somebody else has loaded it"),
    ask: scripts.askNoscript,
    // A server that has no EVALSHA refuses this one for another reason.
    isAsked: ({ token, evalsha }) =>
      token?.works === true && (!evalsha?.failure || says(evalsha, /NOSCRIPT/)),
  },
  flag: {
    label: "#!lua flags=allow-…",
    level: "note",
    without: "scripts are sent without the flag, which only Upstash has",
    ask: scripts.askFlag,
    isAsked: afterEval,
    instead: neededBy(["upstash"], "redis-8.4 or redis"),
  },
  pexpireat: {
    label: "PEXPIREAT in scripts",
    level: "warning",
    without: "ReadWriteLock and ReentrantLock fail",
    ask: scripts.askDeadline,
    instead: ifWrong("a ReadWriteLock or ReentrantLock would be given twice, or never end"),
    isAsked: afterEval,
  },
  once: {
    label: "executed once",
    ...error("a free lock looks held: its own request is in the way"),
    ask: scripts.askExecutions,
    isAsked: afterEval,
  },
  replies: {
    label: "reply of its request",
    ...error("a client believes the reply of another one"),
    ask: traffic.askReplies,
  },
  pipeline: {
    label: "/pipeline",
    level: "warning",
    without: "calls of one turn are a request each",
    ask: traffic.askPipeline,
    instead: (seen) =>
      says(seen, /one command per request/) ? undefined : error("calls of one turn fail together"),
  },
  keys: {
    label: "keys unchanged",
    ...error("two names would be one lock, or one result"),
    ask: commands.askKeys,
  },
  values: {
    label: "values unchanged",
    ...error("a release does not find its own value; a replayed result is another one"),
    ask: commands.askValues,
  },
  request: {
    label: "request of 1 MB",
    level: "warning",
    without: "larger results are not stored, and calls that share a larger request fail",
    ask: traffic.askRequests,
    instead: (seen) => (says(seen, /are stored/) ? error("larger results are replayed cut") : undefined),
  },
  reply: {
    label: "reply of 1 MB",
    level: "warning",
    without: "larger results cannot be replayed",
    ask: traffic.askLargeReplies,
  },
  subscribe: {
    label: "/subscribe",
    level: "note",
    without: "waiters poll: wakeUp has no effect",
    ask: traffic.askStream,
  },
  clock: {
    label: "clock within 1 s",
    level: "warning",
    without: "ages and deadlines are wrong; locks do not compare clocks",
    ask: traffic.askClock,
  },
  reads: {
    label: "reads see last write",
    level: "note",
    without: "your own reads may be stale. If scripts are, so is inspect",
    ask: store.askReads,
  },
  kept: {
    label: "writes stay",
    ...error(`${givenTwice}, and an effect would happen twice`),
    ask: store.askKept,
  },
  eviction: {
    label: "nothing is evicted",
    level: "warning",
    without: "when memory is full, locks, fences and results vanish: set maxmemory-policy noeviction",
    ask: store.askEviction,
  },
  wait: {
    label: "WAIT",
    level: "note",
    without: "the library does not send it: a failover may lose a lock",
    ask: store.askWait,
  },
};

/** All needs, in their order. */
export const needs = Object.keys(requirements) as Need[];
