import { createHash } from "node:crypto";
import process from "node:process";
import { describe, expect, test } from "vitest";
import { twins } from "../../lock-server/src/twins/twins.ts";
import { textOf } from "../../src/redis/script.ts";
import { redisServer } from "../../test/support/redis-servers.ts";
import { luaFiles } from "../../tools/lua.mjs";
import type { Draw } from "../sim/draw.ts";
import { besideRedis, type Words } from "./play.ts";
import { type RandomScript, randomScripts } from "./random-calls.ts";

// The lock server and the embedded engine run the scripts' twins in TypeScript. Here they are held against the Lua, on a real
// redis-server.

test("every script has a twin, which is that of its text", () => {
  const scripts = Object.values(randomScripts).map(({ script }) => script);
  expect([scripts.length, twins.size]).toEqual([luaFiles().length, luaFiles().length]);
  for (const { source, sha } of scripts) {
    for (const dialect of ["redis", "upstash"] as const) {
      expect(createHash("sha1").update(textOf(source, dialect)).digest("hex")).toBe(sha[dialect]);
    }
    expect([...twins.keys()], "change the twin as the script was changed, then its hash").toContain(
      sha.redis,
    );
  }
});

function callOf({ script, call }: RandomScript, draw: Draw): Words {
  const { keys, args } = call(draw);
  return ["EVAL", script.source, keys.length, ...keys, ...args];
}

describe.skipIf(!redisServer)("random states", () => {
  const runs = 15 * Number(process.env.RUNS ?? 1);
  const play = besideRedis();

  test.each(Object.entries(randomScripts))(
    "the twin of %sScript does what its Lua does",
    { timeout: 120_000 },
    async (_, random) => {
      const replies = new Set<string>();
      const tells = random.script.source.includes("PUBLISH");
      const hasTold = () => [...replies].some((reply) => reply.startsWith("message,"));
      // Not always the same: refusals, and grants.
      for (let run = 0; run < runs || replies.size <= 20 || (tells && !hasTold()); run += 1) {
        const next = (draw: Draw) => (draw.chance(0.9) ? callOf(random, draw) : random.disturbance(draw));
        for (const answer of await play(next, run)) replies.add(answer);
      }
      expect(hasTold()).toBe(tells);
    },
  );
});
