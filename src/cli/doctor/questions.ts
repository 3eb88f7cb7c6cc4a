import * as ask from "./ask.ts";
import type { Probe } from "./probe.ts";
import type { Level } from "./remedies.ts";

// All that doctor asks, in its order, a row each: what must be true of a server, how to find out, and what to do if it is not.

export interface Question {
  /** What a server must have. */
  readonly label: string;
  /** @throws Lack if it has not got it */
  readonly ask: (probe: Probe) => Promise<unknown>;
  /** How bad a no is. Default: error. */
  readonly level?: Level;
  /** What to do after a no. Undefined: remedies.ts has a fix for each failure, and nothing else is asked after one. */
  readonly fix?: string;
  /** After a no, nothing else is asked. */
  readonly isNeeded?: boolean;
}

/** By the code of a no: what doctor always asks. */
const always: Readonly<Record<string, Question>> = {
  PING: { label: "an answer to PING", ask: ask.askPing },
  WRITE: { label: "the right to write", ask: ask.askToken },
  CLOCK: {
    label: "the right time",
    ask: ask.askClock,
    level: "warning",
    fix: "set the clock of that server by NTP; if all endpoints say this, the clock of this machine",
  },
  SLOW: {
    label: "a short round trip",
    ask: ask.askDistance,
    level: "warning",
    fix: "run your program near the database, or set timeout to three times as long",
  },
  LOCKS: {
    label: "locks (SET NX, EVAL, EVALSHA)",
    ask: ask.askLocks,
    isNeeded: true,
    fix: "allow EVAL, EVALSHA and all commands in scripts; if they are allowed, use another server, because this one is not like Redis",
  },
  SAME_DATABASE: {
    label: "a database of its own",
    ask: ask.askDatabase,
    fix: "set {url} to another database, or remove it: each counts once",
  },
  DIALECT: {
    label: "the commands of the dialect",
    ask: ask.askDialect,
    fix: 'set `dialect: "redis-8.4"` or else "redis" for this endpoint in your program; to check that here: --dialect redis-8.4',
  },
};

/** What `--conformance` asks, too. */
const more: Readonly<Record<string, Question>> = {
  PIPELINE: {
    label: "several commands at once",
    ask: ask.askPipeline,
    fix: "calls of one turn fail together: if it has no /pipeline, set pipelines: false",
  },
  RESULT: {
    label: "results of up to 1 MB",
    ask: ask.askResult,
    level: "warning",
    fix: "set a smaller maxResult, because larger results are not stored, or cannot be replayed",
  },
  EVICTION: {
    label: "no eviction",
    ask: ask.askEviction,
    level: "warning",
    fix: "set maxmemory-policy noeviction: else locks, fences and results vanish when memory is full",
  },
  SUBSCRIBE: {
    label: "subscriptions",
    ask: ask.askStream,
    level: "warning",
    fix: "without them waiters poll, and wakeUp has no effect",
  },
  // A gateway that takes the path of a stream for the command SUBSCRIBE refuses all others from then on, of everybody.
  STREAMS: { label: "commands afterwards", ask: ask.askPing, fix: "do not set wakeUp; restart the gateway" },
};

/** All that doctor asks, in its order. */
export const questionsOf = (isConformance: boolean) => (isConformance ? { ...always, ...more } : always);
