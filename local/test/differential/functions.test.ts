import { afterAll, beforeAll, describe, it } from "vitest";
import { redisServer } from "../../../test/support/redis-servers.ts";
import { expectSameAnswers } from "./compare.ts";
import { type RedisServer, startRedisServer } from "./redis-server.ts";

const library = (name: string, ...lines: string[]) => [`#!lua name=${name}`, ...lines].join("\n");
const set =
  "redis.register_function('set', function(keys, args) return redis.call('SET', keys[1], args[1]) end)";
const get =
  "redis.register_function{function_name='get', description='reads', flags={'no-writes'}, " +
  "callback=function(keys) return redis.call('GET', keys[1]) end}";
const load = (...words: string[]) => ["FUNCTION", "LOAD", ...words];

const wrong = [
  "return 1",
  "#!lua",
  "#!lua\nreturn 1",
  "#!js name=x\nreturn 1",
  "#!lua name=x name=y\nreturn 1",
  "#!lua name=a-b\nreturn 1",
  "#!lua name=x foo=1\nreturn 1",
  library("x"),
  library("x", "redis.register_function('f')"),
  library("x", "redis.register_function(1, 2, 3)"),
  library("x", "redis.register_function({}, function() end)"),
  library("x", "redis.register_function('f', 1)"),
  library("x", "redis.register_function{callback=function() end}"),
  library("x", "redis.register_function{function_name='f'}"),
  library("x", "redis.register_function{function_name='f', callback=function() end, flags={'foo'}}"),
  library(
    "x",
    "redis.register_function('f', function() end)",
    "redis.register_function('f', function() end)",
  ),
  library("x", "redis.register_function('get', function() end)"),
  library("x", "redis.register_function("),
];

describe.runIf(redisServer !== undefined)("functions, engine and redis-server", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedisServer();
  });
  afterAll(() => redis?.stop());

  it("give the same answers", async () => {
    await expectSameAnswers(redis, [
      ["FUNCTION", "FLUSH"],
      load(library("one", set, get)),
      load(library("one", set)),
      load("REPLACE", library("one", set, get)),
      load("foo", library("one", set)),
      ["FCALL", "set", 1, "a", "hello"],
      ["FCALL", "get", 1, "a"],
      ["FCALL_RO", "get", 1, "a"],
      ["FCALL_RO", "set", 1, "a", "no"],
      ["FCALL", "none", 0],
      ["FCALL", "get", 2, "a"],
      ["FCALL", "get", -1],
      ["FCALL", "get", "x"],
      ["FCALL", "get"],
      ["FUNCTION", "LIST", "LIBRARYNAME", "t*"],
      ["FUNCTION", "LIST", "foo"],
      ["FUNCTION", "STATS"],
      ["FUNCTION", "NOSUCH"],
      ["FUNCTION"],
      load(library("two", "redis.register_function('three', function() return {KEYS} end)")),
      ["FCALL", "three", 0],
      ["EVAL", "return redis.register_function", 0],
      ...wrong.map((code) => load(code)),
      ["FUNCTION", "LIST", "WITHCODE", "LIBRARYNAME", "two"],
      ["FUNCTION", "DELETE", "two"],
      ["FUNCTION", "DELETE", "two"],
      ["FCALL", "get", 1, "a"],
      ["FUNCTION", "FLUSH", "foo"],
      ["FUNCTION", "FLUSH", "SYNC"],
      ["FCALL", "get", 1, "a"],
    ]);
  });
});
