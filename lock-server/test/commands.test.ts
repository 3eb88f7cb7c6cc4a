import process from "node:process";
import { describe, test } from "vitest";
import type { Draw } from "../../evidence/sim/draw.ts";
import { besideRedis, type Words } from "../../evidence/twins/play.ts";
import { redisServer } from "../../test/support/redis-servers.ts";

// The commands of the lock server and the embedded engine beside those of redis-server. Of so few keys that each command
// meets what others have left.

const key = (draw: Draw) => draw.pick(["a", "b", "zoé{x}"]);
const members = (draw: Draw) => draw.pick(["a", "members", "members"]);
const member = (draw: Draw) => draw.pick(["m", "n", "é", "💥", "\uff5e"]);
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
  (draw) => ["ZADD", members(draw), draw.pick(["XX", "GT"]), draw.integer(4, 7), member(draw)],
  (draw) => ["ZADD", "members", "GT", draw.integer(1, 3), member(draw)],
  (draw) => ["ZREM", members(draw), "m", "none"],
  (draw) => ["ZCOUNT", members(draw), draw.pick(["-inf", "(5", 6]), draw.pick(["+inf", 6])],
  (draw) => ["ZREMRANGEBYSCORE", members(draw), "-inf", 5],
  (draw) => ["ZRANGE", members(draw), draw.integer(-5, 5), draw.integer(-5, 5), "WITHSCORES"],
  (draw) => ["ZRANGE", members(draw), number(draw), 5],
  (draw) => ["ZSCORE", members(draw), "m"],
  () => ["GET"],
  () => ["TIME"],
  () => ["PING"],
  () => ["PUBLISH", "heard", "naïve, a\nb"],
  () => ["PUBSUB", "NUMSUB", "heard", "unheard"],
];

describe.skipIf(!redisServer)("commands", () => {
  const play = besideRedis();

  test("do what those of Redis do, right and wrong ones", async () => {
    const next = (draw: Draw) => draw.pick(forms)(draw);
    for (let run = 0; run < 25 * Number(process.env.RUNS ?? 1); run += 1) await play(next, run);
  });
});
