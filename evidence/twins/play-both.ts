import { isDeepStrictEqual } from "node:util";
import { sha1 } from "../../local/src/engine/lua/sha1.ts";
import { Engine, ReplyError } from "../../local/src/memory/index.ts";
import type { Dialect } from "../../src/endpoints/endpoint.ts";
import { upstashFlag } from "../../src/redis/script.ts";
import { Draw } from "../sim/draw.ts";
import type { RandomScript } from "./random-calls.ts";
import { TwinEngine } from "./twin-engine.ts";

type Words = readonly (string | number)[];

/** What the same calls of a script have given with its Lua and with its twin. */
export interface Comparison {
  /** The replies and messages of the Lua. */
  readonly replies: readonly unknown[];
  /** How many calls were executed, and how many of them by the twin. */
  readonly runs: number;
  readonly twinRuns: number;
  /** Where the two differ: `meant` is the Lua's. Undefined: nowhere. */
  readonly difference?: { readonly mine: unknown; readonly meant: unknown; readonly trace: string };
}

/** The text that an endpoint of a dialect gets. */
export const textFor = (dialect: Dialect, source: string) =>
  dialect === "upstash" ? upstashFlag + source : source;

/**
 * Runs random calls on an engine with the twin and on one without, one after another, until they differ.
 *
 * @param source the Lua that is held against the twin. Default: the script's own
 */
export function playBoth(random: RandomScript, seed: number, source = random.script.source): Comparison {
  const { script, call, disturbance } = random;
  const draw = new Draw(seed);
  const dialect = draw.pick(["redis", "upstash"] as const);
  let now = 1_700_000_000_000;
  const [lua, under] = [0, 1].map(() => new Engine({ dialect, now: () => now })) as [Engine, Engine];
  const twin = new TwinEngine(under);
  const [heard, meantToBeHeard]: [unknown[], unknown[]] = [[], []];
  under.subscribe("channels", ["heard", "channel"], (push) => heard.push(push));
  lua.subscribe("channels", ["heard", "channel"], (push) => meantToBeHeard.push(push));
  const text = textFor(dialect, source);
  const trace: string[] = [];
  const replies: unknown[] = [];
  let runs = 0;
  for (let step = 0; step < 60; step += 1) {
    if (draw.chance(0.4)) now += draw.pick([1, 7, 20, 39, 40, 400, 1_600, 2_999]);
    const { keys, args } = call(draw);
    const isCall = draw.chance(0.9);
    const form = draw.chance(0.8) ? "EVALSHA" : "EVAL";
    const other = isCall ? undefined : disturbance(draw);
    const words = [keys.length, ...keys, ...args];
    const theirs = answerOf(lua, other ?? [form, form === "EVAL" ? text : sha1(text), ...words]);
    const own = form === "EVAL" ? textFor(dialect, script.source) : script.sha[dialect];
    const ours = answerOf(twin, other ?? [form, own, ...words]);
    if (isCall && Array.isArray(theirs)) runs += 1;
    trace.push(`${now} ${JSON.stringify(other ?? [form, keys, args])} ${JSON.stringify(theirs)}`);
    if (isCall) replies.push(theirs);
    const mine = { answer: ours, contents: contents(under), heard };
    const meant = { answer: theirs, contents: contents(lua), heard: meantToBeHeard };
    if (!isDeepStrictEqual(mine, meant)) {
      return { replies, runs, twinRuns: twin.runs, difference: { mine, meant, trace: trace.join("\n") } };
    }
    // As after a loss of memory: neither knows the hash any more.
    if (draw.chance(0.01)) for (const engine of [lua, twin]) engine.flush();
  }
  return { replies: [...replies, ...heard], runs, twinRuns: twin.runs };
}

/** A reply, or the text of an error without the place in the script, which a twin does not name. */
function answerOf(engine: Pick<Engine, "execute">, command: Words): unknown {
  try {
    return engine.execute(command);
  } catch (error) {
    if (!(error instanceof ReplyError)) throw error;
    return error.message.replace(/ script: [0-9a-f]{40}, on .*$/, "");
  }
}

/** All keys, with types, values and ttls. */
function contents(engine: Pick<Engine, "execute">): unknown {
  const read: Record<string, (key: string) => Words> = {
    string: (key) => ["GET", key],
    zset: (key) => ["ZRANGE", key, 0, -1, "WITHSCORES"],
    hash: (key) => ["HGETALL", key],
  };
  const keys = [...(engine.execute(["KEYS", "*"]) as string[])].sort();
  return keys.map((key) => {
    const type = engine.execute(["TYPE", key]) as string;
    return [key, type, engine.execute(read[type]!(key)), engine.execute(["PTTL", key])];
  });
}
