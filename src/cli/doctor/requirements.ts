import type { Dialect } from "../../index.ts";
import * as commands from "./ask-commands.ts";
import * as scripts from "./ask-scripts.ts";
import * as store from "./ask-store.ts";
import * as traffic from "./ask-traffic.ts";
import { askClock, askRest } from "./quick.ts";
import type { Question, Seen, SeenByNeed } from "./session.ts";

// All that the library needs of a server: each need is a row, which is asked and shown in this order.

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
  /** What happens instead, after what was seen, in the endpoint's dialect; undefined: nothing else. */
  readonly instead?: (seen: Seen, dialect: Dialect | undefined) => Consequence | undefined;
}

const givenTwice = "a lock would be given twice";
const error = (without: string): Consequence => ({ level: "error", without });
const warning = (without: string): Consequence => ({ level: "warning", without });
const note = (without: string): Consequence => ({ level: "note", without });
const afterEval = (seen: SeenByNeed) => seen.eval?.works === true;

/** Whether this is what was found, or the error. */
const says = ({ failure, found = "" }: Seen, pattern: RegExp) => pattern.test(failure?.message ?? found);

type Instead = NonNullable<Requirement["instead"]>;
/** What is sent in no dialect but these. */
const neededBy =
  (dialects: readonly Dialect[], fix: string): Instead =>
  (_, dialect) =>
    dialect && dialects.includes(dialect)
      ? error(`the dialect ${dialect} needs it: set dialect ${fix}`)
      : undefined;
/** Where the server has it, but does something else. */
const ifWrong =
  (without: string): Instead =>
  ({ works }) =>
    works === false ? error(without) : undefined;
const where =
  (pattern: RegExp, consequence: Consequence): Instead =>
  (seen) =>
    says(seen, pattern) ? consequence : undefined;
const unless =
  (pattern: RegExp, consequence: Consequence): Instead =>
  (seen) =>
    says(seen, pattern) ? undefined : consequence;

const mayAsk = () => true;
const afterRest = ({ rest }: SeenByNeed) => rest?.works === true;
const nothingWorks = error("nothing works; doctor without --conformance says what to fix");
const byScript = (what: string) => note(`${what} is a script, as in the dialect redis`);
const native = neededBy(["redis-8.4", "upstash"], "redis");

/** All needs. */
export const requirements: Readonly<Record<string, Requirement>> = {
  rest: { label: "Upstash's REST API", ...nothingWorks, ask: askRest, isAsked: mayAsk },
  token: { label: "token may write", ...nothingWorks, ask: traffic.askToken, isAsked: afterRest },
  nx: { label: "SET … NX PX", ...error(`${givenTwice}, or never end`), ask: commands.askNx },
  "nx-get": {
    label: "SET … NX GET PX",
    ...note("idempotent runs and waiters send a script, which costs more commands"),
    ask: commands.askNxGet,
    // The library knows what this error says.
    instead: unless(/syntax error/, error("idempotent runs and waiters fail, or run twice")),
  },
  ifeq: { label: "SET … IFEQ PX", ...byScript("an extension"), ask: commands.askIfEqual, instead: native },
  delex: { label: "DELEX … IFEQ", ...byScript("a release"), ask: commands.askDelex, instead: native },
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
    instead: where(/NOSCRIPT/, warning("every script is sent twice, the second time by its text")),
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
    ...note("scripts are sent without the flag, which only Upstash has"),
    ask: scripts.askFlag,
    isAsked: afterEval,
    instead: neededBy(["upstash"], "redis-8.4 or redis"),
  },
  pexpireat: {
    label: "PEXPIREAT in scripts",
    ...warning("ReadWriteLock and ReentrantLock fail"),
    ask: scripts.askDeadline,
    isAsked: afterEval,
    instead: ifWrong("a ReadWriteLock or ReentrantLock would be given twice, or never end"),
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
    instead: unless(/one command per request/, error("calls of one turn fail together")),
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
    ...warning("larger results are not stored, and calls that share a larger request fail"),
    ask: traffic.askRequests,
    instead: where(/are stored/, error("larger results are replayed cut")),
  },
  reply: {
    label: "reply of 1 MB",
    ...warning("larger results cannot be replayed"),
    ask: traffic.askLargeReplies,
  },
  clock: {
    label: "clock within 1 s",
    ...warning("ages and deadlines are wrong; locks do not compare clocks"),
    ask: askClock,
  },
  reads: {
    label: "reads see last write",
    ...note("your own reads may be stale. If scripts are, so is inspect"),
    ask: store.askReads,
  },
  kept: {
    label: "writes stay",
    ...error(`${givenTwice}, and an effect would happen twice`),
    ask: store.askKept,
  },
  eviction: {
    label: "nothing is evicted",
    ...warning("when memory is full, locks, fences and results vanish: set maxmemory-policy noeviction"),
    ask: store.askEviction,
  },
  wait: {
    label: "WAIT",
    ...note("the library does not send it: a failover may lose a lock"),
    ask: store.askWait,
  },
  // Last: some gateways answer nothing any more after it.
  subscribe: {
    label: "/subscribe",
    ...note("waiters poll: wakeUp has no effect"),
    ask: traffic.askStream,
    instead: where(
      /refuses all/,
      error("wakeUp breaks it for everybody: do not set it, and restart the gateway"),
    ),
  },
};
