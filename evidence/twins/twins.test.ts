import { describe, expect, test } from "vitest";
import { sha1 } from "../../local/src/engine/lua/sha1.ts";
import { Engine } from "../../local/src/memory/index.ts";
import { twins } from "../../lock-server/src/twins/twins.ts";
import { publishScript } from "../../src/lock/wake-up/publish.lua.ts";
import { peekScript } from "../../src/redis/peek.lua.ts";
import type { Script } from "../../src/redis/script.ts";
import { arrivalScript } from "../../src/sync/internal/arrival.lua.ts";
import { memberScript } from "../../src/sync/internal/member.lua.ts";
import { queueScript } from "../../src/sync/internal/queue.lua.ts";
import { luaFiles } from "../../tools/lua.mjs";
import { simulate } from "../sim/simulate.ts";
import { playBoth, textFor } from "./play-both.ts";
import { randomScripts } from "./random-calls.ts";
import { TwinEngine } from "./twin-engine.ts";

// The simulator runs most scripts by twins in TypeScript. Here they are held against their Lua.

/** The scripts that tell those that wait. */
const tellers: readonly Script[] = [publishScript, memberScript, arrivalScript, queueScript];

test("every script has a twin, which is that of its text", () => {
  expect(randomScripts).toHaveLength(luaFiles().length);
  for (const { script } of randomScripts) {
    for (const dialect of ["redis", "upstash"] as const) {
      const sha = sha1(textFor(dialect, script.source));
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
      const played = playBoth(random, seed + run);
      const { difference } = played;
      expect(difference?.mine, difference?.trace).toStrictEqual(difference?.meant);
      // Everything that was executed was executed by the twin.
      expect(played.twinRuns).toBe(played.runs);
      for (const reply of played.replies) replies.add(JSON.stringify(reply));
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
