import process from "node:process";
import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "vitest";
import { Draw } from "../../evidence/sim/draw.ts";
import { type RandomScript, randomScripts } from "../../evidence/twins/random-calls.ts";
import { toText } from "../../local/src/engine/commands/bytes.ts";
import { Engine, ReplyError } from "../../local/src/memory/index.ts";
import type { CommandContext } from "../src/engine/command.ts";
import { CommandError } from "../src/engine/command-error.ts";
import { execute } from "../src/engine/execute.ts";
import { Keyspace } from "../src/engine/keyspace.ts";
import { executeScript } from "../src/engine/scripts.ts";
import { sqlStorage } from "./storage.ts";

// The commands of a lock server, held against the engine, which is held against redis-server: scripts, whose twins call most
// of them, and plain commands, of so few keys that each meets what others have left.

type Words = readonly (string | number)[];

/** A lock server's keys with a clock of their own, and what was published. */
function lockServer() {
  const sql = sqlStorage();
  const space = new Keyspace(sql);
  const heard: unknown[] = [];
  const subscribers = (channel: string) => Number(["heard", "channel"].includes(channel));
  const context: CommandContext = {
    space,
    subscribers,
    publish(channel, payload) {
      if (subscribers(channel) > 0) heard.push(["message", channel, payload]);
      return subscribers(channel);
    },
  };
  const call = (words: readonly string[]) => execute(context, words);
  return {
    space,
    heard,
    rows: () =>
      sql.exec("SELECT key FROM entries WHERE deadline > ? OR deadline IS NULL", space.now).toArray(),
    execute: (command: Words) => {
      const words = command.map(String);
      return words[0] === "EVALSHA" ? executeScript(words, call) : call(words);
    },
  };
}

function answerOf(server: { execute(command: Words): unknown }, command: Words): unknown {
  try {
    return server.execute(command);
  } catch (error) {
    if (error instanceof ReplyError || error instanceof CommandError) return "an error";
    throw error;
  }
}

/** A reply to a command; of the fields of a hash, whose order says nothing, in one order. */
function inOrder([name]: Words, reply: unknown): unknown {
  if (name !== "HGETALL") return reply;
  const words = reply as string[];
  return words.flatMap((word, index) => (index % 2 ? [] : [`${word}=${words[index + 1]}`])).sort();
}

const readers: Readonly<Record<string, (key: string) => Words>> = {
  string: (key) => ["GET", key],
  zset: (key) => ["ZRANGE", key, 0, -1, "WITHSCORES"],
  hash: (key) => ["HGETALL", key],
};

/** Plays the same on both, and compares replies, contents and messages after each step. */
function playBoth(next: (draw: Draw) => Words, scripts: readonly RandomScript[], seed: number): string[] {
  const draw = new Draw(seed);
  let now = 1_700_000_000_000;
  const engine = new Engine({ dialect: "redis-8.4", now: () => now });
  for (const { script } of scripts) engine.execute(["SCRIPT", "LOAD", script.source]);
  const told: unknown[] = [];
  engine.subscribe(
    "channels",
    ["heard", "channel"],
    (push) => push[0] === "message" && told.push(push.map((word) => toText(String(word)))),
  );
  const server = lockServer();
  const trace: string[] = [];
  const contents = () =>
    (engine.execute(["KEYS", "*"]) as string[]).sort().map((key) => {
      const read = readers[engine.execute(["TYPE", key]) as string]!(key);
      return [read, ["PTTL", key]];
    });
  for (let step = 0; step < 60; step += 1) {
    if (draw.chance(0.4)) now += draw.pick([1, 7, 39, 40, 400, 2_999]);
    server.space.now = now;
    const command = next(draw);
    const theirs = answerOf(engine, command);
    const mine = answerOf(server, command);
    trace.push(`${now} ${JSON.stringify(command)} ${JSON.stringify(theirs)}`);
    const reads = contents();
    const read = (from: { execute(command: Words): unknown }) =>
      reads.map((pair) => pair.map((one) => inOrder(one, from.execute(one))));
    const [here, there] = [
      { answer: mine, contents: read(server), keys: server.rows().length, heard: server.heard },
      { answer: theirs, contents: read(engine), keys: reads.length, heard: told },
    ];
    if (!isDeepStrictEqual(here, there)) expect(here, trace.join("\n")).toStrictEqual(there);
  }
  return trace;
}

const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
const runs = 5 * Number(process.env.RUNS ?? 1);
console.info(`SEED=${seed}`);

describe("a lock server does what Redis does", () => {
  test.each(randomScripts)("$name", (random) => {
    const { script, call, disturbance } = random;
    const next = (draw: Draw): Words => {
      const other = draw.chance(0.1) ? disturbance(draw) : ["HDEL"];
      // A lock server has no HDEL: nothing takes single fields away there.
      if (other[0] !== "HDEL") return other;
      const { keys, args } = call(draw);
      return ["EVALSHA", script.sha.redis, keys.length, ...keys, ...args];
    };
    const replies = Array.from({ length: runs }, (_, run) => playBoth(next, [random], seed + run)).flat();
    expect(new Set(replies).size).toBeGreaterThan(100);
  });

  test("ZRANGE with every range of three members", () => {
    const engine = new Engine({ dialect: "redis-8.4" });
    const server = lockServer();
    for (const member of ["\uff5e", "💥", "é"]) {
      for (const one of [engine, server]) one.execute(["ZADD", "z", "GT", 1, member]);
    }
    const places = Array.from({ length: 11 }, (_, index) => index - 5);
    for (const from of places) {
      for (const to of places) {
        const command = ["ZRANGE", "z", from, to];
        expect([command, server.execute(command)]).toEqual([command, engine.execute(command)]);
      }
    }
  });

  test("plain commands, right and wrong ones", () => {
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
      (draw) => ["SET", key(draw), value(draw), "XX", "GET"],
      (draw) => ["SET", key(draw), value(draw), "IFEQ", value(draw), "PX", 400],
      (draw) => ["set", key(draw), value(draw), "ifeq", value(draw)],
      (draw) => [
        "SET",
        key(draw),
        value(draw),
        draw.pick(["NX", "PX", "KEEPTTL", "XX"]),
        draw.pick(["XX", "NX", "PX", "KEEPTTL"]),
      ],
      (draw) => ["DELEX", key(draw), "IFEQ", value(draw)],
      (draw) => ["DELEX", key(draw)],
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
      (draw) => ["ZCOUNT", sorted(draw), draw.pick(["-inf", "(5", 6]), draw.pick(["+inf", "(7", 6])],
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
    const next = (draw: Draw) => draw.pick(forms)(draw);
    for (let run = 0; run < 5 * runs; run += 1) playBoth(next, [], seed + run);
  });
});
