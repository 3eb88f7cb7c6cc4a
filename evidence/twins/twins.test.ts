import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "vitest";
import { sha1 } from "../../local/src/engine/lua/sha1.ts";
import { Engine, ReplyError } from "../../local/src/memory/index.ts";
import { twins } from "../../lock-server/src/twins/twins.ts";
import type { Dialect } from "../../src/endpoints/endpoint.ts";
import { publishScript } from "../../src/lock/wake-up/publish.lua.ts";
import { peekScript } from "../../src/redis/peek.lua.ts";
import { type Script, upstashFlag } from "../../src/redis/script.ts";
import { arrivalScript } from "../../src/sync/internal/arrival.lua.ts";
import { memberScript } from "../../src/sync/internal/member.lua.ts";
import { queueScript } from "../../src/sync/internal/queue.lua.ts";
import { luaFiles } from "../../tools/lua.mjs";
import { Draw } from "../sim/draw.ts";
import { simulate } from "../sim/simulate.ts";
import { type RandomScript, randomScripts } from "./random-calls.ts";
import { TwinEngine } from "./twin-engine.ts";

// The simulator runs most scripts by twins in TypeScript. Here they are held against their Lua.

type Words = readonly (string | number)[];

const sourceOf = (script: Script, dialect: Dialect) =>
  dialect === "upstash" ? upstashFlag + script.source : script.source;

/** A reply, or the text of an error without the place in the script, which a twin does not name. */
function answerOf(engine: Pick<Engine, "execute">, command: Words): unknown {
  try {
    return engine.execute(command);
  } catch (error) {
    if (!(error instanceof ReplyError)) throw error;
    return error.message.replace(/ script: [0-9a-f]{40}, on .*$/, "");
  }
}

/** The scripts that tell those that wait. */
const tellers: readonly Script[] = [publishScript, memberScript, arrivalScript, queueScript];

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

/** Runs random calls on an engine with the twin and on one without, one after another. Returns the replies and the messages. */
function playBoth({ script, call, disturbance }: RandomScript, seed: number): unknown[] {
  const draw = new Draw(seed);
  const dialect = draw.pick(["redis", "upstash"] as const);
  let now = 1_700_000_000_000;
  const [lua, under] = [0, 1].map(() => new Engine({ dialect, now: () => now })) as [Engine, Engine];
  const twin = new TwinEngine(under);
  const [heard, meantToBeHeard]: [unknown[], unknown[]] = [[], []];
  under.subscribe("channels", ["heard", "channel"], (push) => heard.push(push));
  lua.subscribe("channels", ["heard", "channel"], (push) => meantToBeHeard.push(push));
  const trace: string[] = [];
  const replies: unknown[] = [];
  let runs = 0;
  for (let step = 0; step < 60; step += 1) {
    if (draw.chance(0.4)) now += draw.pick([1, 7, 39, 40, 400, 2_999]);
    const { keys, args } = call(draw);
    const isCall = draw.chance(0.9);
    const form = draw.chance(0.8) ? ["EVALSHA", script.sha[dialect]] : ["EVAL", sourceOf(script, dialect)];
    const command = isCall ? [...form, keys.length, ...keys, ...args] : disturbance(draw);
    const theirs = answerOf(lua, command);
    if (isCall && Array.isArray(theirs)) runs += 1;
    trace.push(
      `${now} ${JSON.stringify(isCall ? [form[0], keys, args] : command)} ${JSON.stringify(theirs)}`,
    );
    const mine = { answer: answerOf(twin, command), contents: contents(under), heard };
    const meant = { answer: theirs, contents: contents(lua), heard: meantToBeHeard };
    // Compared by `expect` only to show the difference: it takes as long as the scripts.
    if (!isDeepStrictEqual(mine, meant)) expect(mine, trace.join("\n")).toStrictEqual(meant);
    if (isCall) replies.push(theirs);
    // As after a loss of memory: neither knows the hash any more.
    if (draw.chance(0.01)) for (const engine of [lua, twin]) engine.flush();
  }
  // Everything that was executed was executed by the twin.
  expect(twin.runs).toBe(runs);
  return [...replies, ...heard];
}

test("every script has a twin, which is that of its text", () => {
  expect(randomScripts).toHaveLength(luaFiles().length);
  for (const { script } of randomScripts) {
    for (const dialect of ["redis", "upstash"] as const) {
      const sha = sha1(sourceOf(script, dialect));
      expect(sha).toBe(script.sha[dialect]);
      expect(twins.has(sha), "change the twin as the script was changed, then its hashes").toBe(true);
    }
  }
  expect(twins.size).toBe(2 * randomScripts.length);
});

test("a changed script runs as Lua", () => {
  const engine = new TwinEngine(new Engine({ dialect: "redis" }));
  const script = peekScript;
  const rest = [1, "a"];
  expect(engine.execute(["EVAL", `do return {"changed"} end ${script.source}`, ...rest])).toEqual([
    "changed",
  ]);
  expect(() => engine.execute(["EVALSHA", script.sha.redis, ...rest])).toThrow("NOSCRIPT");
  expect(engine.runs).toBe(0);
  expect(engine.execute(["EVAL", script.source, ...rest])).toEqual(["", -2, ""]);
  expect(engine.execute(["EVALSHA", script.sha.redis, ...rest])).toEqual(["", -2, ""]);
  expect(engine.runs).toBe(2);
  engine.flush();
  expect(() => engine.execute(["EVALSHA", script.sha.redis, ...rest])).toThrow("NOSCRIPT");
});

describe("random states", () => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
  const runs = 30 * Number(process.env.RUNS ?? 1);
  console.info(`SEED=${seed}`);

  test.each(randomScripts)("the twin of $name does what its Lua does", { timeout: 120_000 }, (random) => {
    const replies = new Set<string>();
    const seen = (part: string) => [...replies].some((reply) => reply.includes(part));
    const tells = tellers.includes(random.script);
    // Not always the same: refusals, grants, and those of a script that is not known.
    const isVaried = () => replies.size > 20 && seen("NOSCRIPT") && (!tells || seen('"message"'));
    for (let run = 0; run < runs || !isVaried(); run += 1) {
      for (const reply of playBoth(random, seed + run)) replies.add(JSON.stringify(reply));
    }
    expect(seen('"message"')).toBe(tells);
  });
});

test("simulations are the same with twins as in Lua, byte for byte", { timeout: 120_000 }, async () => {
  // Locks and runs, every synchronizer, operators (24, 30), and wake-ups (26, 27).
  const seeds = [1, 2, 3, 5, 11, 14, 17, 20, 23, 24, 26, 27, 30, 47];
  const scripts = { twin: 0, lua: 0 };
  for (const seed of seeds) {
    const [twin, lua] = [
      await simulate({ seed, traced: true, lua: false }),
      await simulate({ seed, traced: true, lua: true }),
    ];
    expect(lua.lines.length).toBeGreaterThan(50);
    expect(twin.lines.join("\n"), `node evidence/sim.mjs --seed ${seed} --trace`).toBe(lua.lines.join("\n"));
    expect(lua.counts.get("script run by its twin")).toBeUndefined();
    scripts.twin += twin.counts.get("script run by its twin") ?? 0;
    scripts.lua += twin.counts.get("script run as Lua") ?? 0;
  }
  // Else the simulator is slow again, and nothing else shows why.
  expect(scripts.twin, JSON.stringify(scripts)).toBeGreaterThan(20 * scripts.lua);
  expect(scripts.twin).toBeGreaterThan(1_000);
});
