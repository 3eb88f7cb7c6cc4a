import { createHash } from "node:crypto";
import process from "node:process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Draw } from "../../evidence/sim/draw.ts";
import { type Compared, comparedEngine, playAll, playScript, type Words } from "../../evidence/twins/play.ts";
import { randomScripts } from "../../evidence/twins/random-calls.ts";
import { channels, SteppedRedis } from "../../evidence/twins/stepped-redis.ts";
import { redisServer, startServer } from "../../test/support/redis-servers.ts";
import type { CommandContext } from "../src/engine/command.ts";
import { commands } from "../src/engine/commands.ts";
import { execute } from "../src/engine/execute.ts";
import { Keyspace } from "../src/engine/keyspace.ts";
import { ReplyError } from "../src/engine/reply-error.ts";
import { SqlStorage } from "../src/engine/sql-storage.ts";
import { twins } from "../src/twins/twins.ts";
import { sqlStorage } from "./storage.ts";

// The commands, held against redis-server, over both kinds of storage: that of a Durable Object, and the memory of the
// embedded engine. Of so few keys that each command meets what others have left.

/** A lock server's keys with a clock of the test's. */
function lockServer(now: () => number): Compared {
  const sql = sqlStorage();
  const space = new Keyspace(new SqlStorage(sql));
  const heard: string[][] = [];
  const subscribers = (channel: string) => Number((channels as readonly string[]).includes(channel));
  const context: CommandContext = {
    space,
    commands,
    scripts: twins,
    executed: 0,
    subscribers,
    publish(channel, payload) {
      if (subscribers(channel) > 0) heard.push(["message", channel, payload]);
      return subscribers(channel);
    },
    unknown: (what) => new ReplyError(`ERR unknown ${what}`),
  };
  return {
    heard,
    get executed() {
      return context.executed;
    },
    execute(command) {
      space.now = now();
      const [name, text, ...rest] = command.map(String);
      // As the object does, which computes hashes in a thread.
      const words =
        name === "EVAL" ? ["EVALSHA", createHash("sha1").update(text!).digest("hex")] : [name!, text!];
      return execute(context, [...words, ...rest].slice(0, command.length));
    },
    keys: () =>
      sql
        .exec("SELECT key FROM entries WHERE deadline > ? OR deadline IS NULL", now())
        .toArray()
        .map(({ key }) => String(key)),
  };
}

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
const runs = 5 * Number(process.env.RUNS ?? 1);
console.info(`SEED=${seed}`);

describe.skipIf(!redisServer)("commands do what Redis does", () => {
  let redis: SteppedRedis;
  beforeAll(async () => {
    redis = await SteppedRedis.open(await startServer());
  });
  afterAll(() => redis.close());

  test.each(randomScripts)("those of $name, in a Durable Object's storage", async (random) => {
    const all = new Set<string>();
    for (let run = 0; run < runs || all.size < 15; run += 1) {
      const { answers, difference } = await playScript(redis, random, seed + run, { server: lockServer });
      if (difference) expect(difference.mine, difference.trace.join("\n")).toEqual(difference.theirs);
      for (const answer of answers) all.add(answer);
    }
  });

  test("ZRANGE with every range of three members", async () => {
    const now = () => 1_700_000_000_000;
    const servers = [lockServer(now), comparedEngine("redis-8.4", now)];
    await redis.empty();
    const answers = async (command: Words) => {
      const { answer } = await redis.play(now(), command);
      return [answer, ...servers.map((server) => server.execute(command))];
    };
    for (const member of ["\uff5e", "💥", "é"])
      expect(await answers(["ZADD", "z", "GT", 1, member])).toEqual([1, 1, 1]);
    const places = Array.from({ length: 11 }, (_, index) => index - 5);
    for (const from of places) {
      for (const to of places) {
        const [theirs, ...mine] = await answers(["ZRANGE", "z", from, to]);
        expect([from, to, ...mine]).toEqual([from, to, theirs, theirs]);
      }
    }
  });

  test("plain commands, right and wrong ones", async () => {
    const key = (draw: Draw) => draw.pick(["a", "b", "zoé{x}"]);
    const sorted = (draw: Draw) => draw.pick(["a", "only members", "only members"]);
    const value = (draw: Draw) => draw.pick(["x", "y", "", "naïve ☃ 💥", "1"]);
    const number = (draw: Draw) =>
      draw.chance(0.7)
        ? draw.pick([1, 40, 400, "-5", "0", 1_700_000_000_500])
        : draw.pick(["1.5", "x", "", " 5", "5 ", "5\n", "0x10", "1e3", "1e999", "05", "-0", "+5", "5n"]);
    const forms: readonly ((draw: Draw) => Words)[] = [
      (draw) => ["SET", key(draw), value(draw), "PX", number(draw)],
      (draw) => ["SET", key(draw), value(draw), "NX", "PX", number(draw)],
      (draw) => ["SET", key(draw), value(draw), "NX", "GET", "PX", 40],
      (draw) => ["SET", key(draw), value(draw), "GET"],
      (draw) => ["SET", key(draw), value(draw), "IFEQ", value(draw), "PX", 400],
      (draw) => ["set", key(draw), value(draw), "ifeq", value(draw)],
      (draw) => ["SET", key(draw), value(draw), "KEEPTTL", ...draw.pick([[], ["PX", 40], ["PX"], ["NONE"]])],
      (draw) => ["SET", key(draw), value(draw), "IFEQ", "x", ...draw.pick([["GET"], ["NX"]])],
      (draw) => ["DELEX", key(draw), "IFEQ", value(draw)],
      (draw) => ["GET", key(draw)],
      (draw) => ["MGET", key(draw), key(draw), "none"],
      (draw) => ["DEL", key(draw), key(draw)],
      (draw) => ["EXISTS", key(draw), key(draw), key(draw)],
      (draw) => ["PTTL", key(draw)],
      (draw) => ["PEXPIRE", key(draw), number(draw)],
      (draw) => ["PEXPIREAT", key(draw), number(draw)],
      (draw) => ["HSET", key(draw), value(draw), "1", "g", value(draw)],
      (draw) => ["HMGET", key(draw), "g", "none"],
      (draw) => ["HGETALL", key(draw)],
      (draw) => ["ZADD", sorted(draw), draw.pick(["XX", "GT"]), draw.pick([5, 6, 7]), draw.pick(["m", "n"])],
      (draw) => [
        "ZADD",
        "only members",
        "GT",
        draw.integer(1, 9),
        draw.pick(["m", "n", "é", "💥", "\uff5e"]),
      ],
      (draw) => ["ZREM", sorted(draw), "m", "none"],
      (draw) => ["ZCOUNT", sorted(draw), draw.pick(["-inf", "(5", 6]), draw.pick(["+inf", 6])],
      (draw) => ["ZREMRANGEBYSCORE", sorted(draw), "-inf", 5],
      (draw) => ["ZRANGE", sorted(draw), draw.pick([0, -1, 1, -3]), draw.pick([0, -1, 5, -4]), "WITHSCORES"],
      (draw) => ["ZRANGE", sorted(draw), number(draw), 5],
      (draw) => ["ZSCORE", sorted(draw), "m"],
      () => ["GET"],
      () => ["TIME"],
      () => ["PING"],
      () => ["PUBLISH", "heard", "naïve, a\nb"],
      () => ["PUBSUB", "NUMSUB", "heard", "unheard"],
    ];
    const next = (draw: Draw) => ({ command: draw.pick(forms)(draw) });
    const servers = (now: () => number) => [lockServer(now), comparedEngine("redis-8.4", now)];
    for (let run = 0; run < 5 * runs; run += 1) {
      const { difference } = await playAll(redis, servers, next, seed + run);
      if (difference) expect(difference.mine, difference.trace.join("\n")).toEqual(difference.theirs);
    }
  });
});
