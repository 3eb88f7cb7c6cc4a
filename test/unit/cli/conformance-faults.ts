import { ReplyError } from "../../../local/src/memory/index.ts";
import { EndpointError } from "../../../src/index.ts";
import {
  answering,
  deep,
  inReply,
  instead,
  refuse,
  refusing,
  scripts,
  set,
  ttl,
  values,
  without,
} from "./conformance-bends.ts";
import type { Bend } from "./conformance-bent.ts";

// Servers of which each has one fault, and what doctor --conformance must find there.

const failure = new EndpointError("e", "redis", "HTTP 400, ERR one of them failed", { status: 400 });
/** A gateway with one connection to Redis, which is in subscriber mode once anybody has asked for a stream. */
export function subscribed(): Bend {
  let isSubscriber = false;
  return {
    subscribe() {
      isSubscriber = true;
      return Promise.reject(new EndpointError("e", "http", "HTTP 500", { status: 500 }));
    },
    command(words, execute) {
      if (isSubscriber) throw new ReplyError("ERR Can't execute it in this context");
      return execute(words);
    },
  };
}
export const no = (...lacks: string[]) => Object.fromEntries(lacks.map((need) => [need, "no"]));
const unasked = (...lacks: string[]) => Object.fromEntries(lacks.map((need) => [need, "unknown"]));
const followEval: string[] = ["evalsha", "flag"];
/** Without EVAL, what is asked after it is not known. */
export const noEval = { ...no("eval"), ...unasked(...followEval) };

/** By the row that is not `yes`, and by what is wrong: the server. Of `eval`, others follow. */
export const faults: Readonly<Record<string, Readonly<Record<string, Bend>>>> = {
  nx: {
    "NX is not known": refusing(/^SET .* NX PX/),
    "NX overwrites": instead(set.nx, (words, execute) => execute(without(words, "NX", 1))),
    "NX stores, and says that it was refused": answering(set.nx, () => null),
    "NX stores nothing, and says OK": instead(set.nx, () => "OK"),
    "a refused NX gives the key its own ttl": instead(set.nx, (words, execute) => {
      const reply = execute(words);
      if (reply === null) execute(["PEXPIRE", words[1]!, words.at(-1)!]);
      return reply;
    }),
    "NX forgets its ttl": instead(set.nx, (words, execute) => execute(without(words, "PX", 2))),
    "a ttl is halved": ttl(set.nx, (ms) => Math.ceil(ms / 2)),
    "a ttl is at most a second": ttl(set.nx, (ms) => Math.min(ms, 1_000)),
  },
  native: {
    "NX GET overwrites": instead(set.nxGet, (words, execute) => execute(without(words, "NX", 1))),
    "NX GET returns nothing": answering(set.nxGet, () => null),
    "NX GET returns a third value": answering(set.nxGet, (reply) => reply && "third"),
    "NX GET returns its own value": answering(set.nxGet, (_, words) => words[2]!),
    "IFEQ is not known": refusing(/^SET .* IFEQ /),
    "IFEQ overwrites another value": instead(set.ifeq, (words, execute) =>
      execute(execute(["GET", words[1]!]) === null ? words : without(words, "IFEQ", 2)),
    ),
    "IFEQ does not renew": instead(set.ifeq, (words, execute) => execute([...words.slice(0, 5), "KEEPTTL"])),
    "IFEQ writes nothing, and says OK": instead(set.ifeq, (words, execute) =>
      execute(["GET", words[1]!]) === words[4] ? "OK" : null,
    ),
    "DELEX deletes nothing": instead(/^DELEX/, (words, execute) =>
      Number(execute(["GET", words[1]!]) === words[3]),
    ),
    "DELEX deletes another value": instead(/^DELEX/, (words, execute) => execute(["DEL", words[1]!])),
    "DELEX says 1 where nothing was": answering(/^DELEX/, () => 1),
  },
  result: {
    "values are cut at 500 kB": values((value) => value.slice(0, 500_000)),
    "a large value stays away, with OK": instead(set.any, (words, execute) =>
      words[2]!.length > 100_000 ? "OK" : execute(words),
    ),
    "large requests are refused": refusing(/^.{100001}/, "ERR too large"),
  },
  eval: {
    "EVAL is not known": refusing(/^EVAL /, "ERR unknown command 'EVAL'"),
    "EVAL stores nothing": scripts(/^claim$/, undefined, (key, execute) => execute(["DEL", key])),
    "a script's SET forgets its ttl": scripts(/^(claim|keep)$/, undefined, (key, execute) =>
      execute(["PERSIST", key]),
    ),
    "a script does not see what is there": scripts(/^claim$/, (key, execute) => execute(["DEL", key])),
    "a script deletes another value": scripts(/^end$/, undefined, (key, execute) => execute(["DEL", key])),
    "a script's PTTL is in seconds": inReply(2, (ms) => Math.floor(ms / 1_000)),
    "a script prints numbers with an exponent": inReply(1, (fence) => fence.toExponential(7)),
  },
  evalsha: {
    "no script is remembered": refusing(/^EVALSHA /, "NOSCRIPT No matching script"),
    "EVALSHA changes nothing": instead(/^EVALSHA/, (words, execute) => {
      const before = execute(["PTTL", words[3]!]);
      const reply = execute(words);
      execute(["PEXPIRE", words[3]!, String(before)]);
      return reply;
    }),
    "an unknown script is another error": {
      command: (words, execute) => {
        try {
          return execute(words);
        } catch {
          return refuse("ERR no such script");
        }
      },
    },
  },
  flag: {
    "the flag of scripts is refused": refusing(/#!lua flags/, "ERR Unexpected flag in script shebang"),
  },
  pipeline: {
    "a pipeline fails": { pipeline: (outcomes) => outcomes().map(() => ({ error: failure })) },
    "one error fails a whole pipeline": {
      pipeline(outcomes) {
        const all = outcomes();
        return all.some((each) => "error" in each) ? all.map(() => ({ error: failure })) : all;
      },
    },
    "a pipeline's replies are in another order": { pipeline: (outcomes) => outcomes().reverse() },
    "a pipeline's errors are replies": {
      pipeline: (outcomes) => outcomes().map((each) => ("error" in each ? { reply: null } : each)),
    },
    "a pipeline stores nothing": instead(/^SET PX/, (words, execute) =>
      words[1]!.endsWith(":pipeline") ? "OK" : execute(words),
    ),
  },
  subscribe: {
    "there are no streams": {
      subscribe: () => Promise.reject(new EndpointError("e", "http", "HTTP 404", { status: 404 })),
    },
    "messages do not arrive": instead(/^PUBLISH/, () => 1),
    "the path of a stream is the command SUBSCRIBE": subscribed(),
  },
  eviction: {
    "keys are evicted": instead(/^CONFIG/, () => ["maxmemory-policy", "allkeys-lru"]),
  },
};

/** Where other rows than one are not `yes`. */
export const wideFaults: Readonly<
  Record<string, readonly [bend: Bend, lacks: Readonly<Record<string, string>>]>
> = {
  "every ttl is halved": [ttl(set.any, (ms) => Math.ceil(ms / 2)), no("nx", "native", "pipeline", "result")],
  "a replica lags, which answers GET": [answering(/^M?GET/, (reply) => deep(reply, () => null)), {}],
  "scripts that read find nothing": [
    {
      command: (words, execute) => (words.at(-1) === "peek" ? ["", -2, ""] : execute(words)),
    },
    noEval,
  ],
  "EVAL is not allowed": [
    refusing(/^EVAL/, "NOPERM this user has no permissions to run 'eval'"),
    unasked("eval", ...followEval),
  ],
  "numbers are texts": [
    answering(/^(?:EVAL|EVALSHA|DELEX)\b/, (reply) =>
      deep(reply, (item) => (typeof item === "number" ? String(item) : item)),
    ),
    { ...no("native"), ...noEval },
  ],
  "CONFIG is not allowed": [refusing(/^CONFIG/, "NOPERM no permissions"), unasked("eviction")],
};
