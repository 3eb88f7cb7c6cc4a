import fc from "fast-check";
import { codePoint } from "../../../test/support/code-point.ts";
import { positions } from "./geo-arbitrary.ts";
import { groupsOfStreams, streams } from "./stream-arbitrary.ts";
import { type Command, command, field, index, integer, key, optional, some, value, word } from "./words.ts";

const float = fc.oneof(
  fc.constantFrom("0.5", "-0.25", "3", "1e2", "-1e-2", "x", "inf", "0", "1.", ".5", "", "0.1", "0.2", "-0"),
  fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e20, max: 1e20 }).map(String),
);
const score = fc.constantFrom("0", "1", "2", "-1", "0.5", "inf", "-inf", "1e20", "x", "3");
const bound = fc.constantFrom("-inf", "+inf", "0", "(1", "1", "2", "(x", "-1", "0.5");
// Unbiased and from a wide range: equal ttls could compare differently, because the servers' clocks are a ms apart.
const seconds = fc.noBias(fc.integer({ min: 1_000, max: 1_000_000_000 }));
const time = fc.oneof(
  { weight: 6, arbitrary: seconds },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      0,
      -1,
      "x",
      "9223372036854775807",
      "-9223372036854775808",
      "92233720368547760",
      "",
    ),
  },
);
const past = fc.constantFrom(1, 1000, 1_500_000_000);
const at = fc.oneof(fc.noBias(fc.integer({ min: 4_000_000_000_000, max: 5_000_000_000_000 })), past, time);
const glob = fc.constantFrom("*", "?", "[ab]", "[^a]", "a*", "[a-b]", "\\a", "**", "[", "", "b", "[b-a]");

const expiry = fc.oneof(
  fc.tuple(word("EX", "PX", "ex"), time),
  fc.tuple(word("EXAT", "PXAT"), at),
  fc.constantFrom<Command>(["KEEPTTL"], ["EX"], ["PERSIST"]),
);
const setOption = fc.oneof<fc.Arbitrary<Command>[]>(
  expiry,
  fc.constantFrom<Command>(["NX"], ["XX"], ["GET"], ["nx"], ["get"], ["IFEQ", "v"]),
);
const expireOption = word("NX", "XX", "GT", "LT", "xx", "foo");
const zaddOption = word("NX", "XX", "GT", "LT", "CH", "INCR", "ch");

const count = word(2, 1, 2, 1, 3, 0, -1, "x");
// More than there are: what is drawn is all of them, in any order.
const all = word(100, 0, "x");
const side = word("LEFT", "right", "RIGHT", "foo");
const scanOption = fc.constantFrom<Command>(
  ["MATCH", "[f1]*"],
  ["COUNT", 1000],
  ["COUNT", 0],
  ["TYPE", "set"],
  ["x"],
);
const lexBound = fc.constantFrom("-", "+", "[f", "(f", "[1", "(g", "[é", "f", "", "[", "-x");
const anyBound = fc.oneof(bound, lexBound);
const limit = fc.tuple(word("LIMIT"), index, index);
const rangeOption = fc.oneof<fc.Arbitrary<Command>[]>(
  fc.constantFrom<Command>(["WITHSCORES"], ["REV"], ["rev"], ["BYSCORE"], ["BYLEX"], ["foo"], ["LIMIT", 0]),
  fc.constantFrom<Command>(["WITHSCORES"], ["REV"]),
  limit,
);
const combineOption = fc.oneof<fc.Arbitrary<Command>[]>(
  fc.constantFrom<Command>(["WITHSCORES"], ["AGGREGATE", "MIN"], ["aggregate", "max"], ["AGGREGATE", "SUM"]),
  fc.constantFrom<Command>(["WEIGHTS", 2], ["WEIGHTS", 1, -3], ["WEIGHTS", "x"], ["foo"], ["AGGREGATE"]),
);

const strings: readonly fc.Arbitrary<Command>[] = [
  command("GET", key),
  command("SET", key, value),
  command("SET", key, value, some(setOption)),
  command("SETNX", key, value),
  command("SETEX", key, time, value),
  command("PSETEX", key, time, value),
  command("GETSET", key, value),
  command("GETDEL", key),
  command("GETEX", key, fc.oneof(fc.constant<Command>([]), some(expiry, 2))),
  command("MGET", key, some(key)),
  command("MSET", key, value, some(fc.tuple(key, value)), optional(key)),
  command("MSETNX", key, value, some(fc.tuple(key, value))),
  command("INCR", key),
  command("DECR", key),
  command("INCRBY", key, integer),
  command("DECRBY", key, integer),
  command("INCRBYFLOAT", key, float),
  command("APPEND", key, value),
  command("STRLEN", key),
  command("GETRANGE", key, index, index),
  command("SETRANGE", key, index, value),
];

// Without DBSIZE: Redis counts expired keys until it removes them.
const keys: readonly fc.Arbitrary<Command>[] = [
  command("DEL", key, some(key)),
  command("UNLINK", key),
  command("EXISTS", key, some(key)),
  command("TYPE", key),
  command("EXPIRE", key, time, some(expireOption, 2)),
  command("PEXPIRE", key, time, some(expireOption, 2)),
  command("EXPIREAT", key, at, some(expireOption, 2)),
  command("PEXPIREAT", key, at, some(expireOption, 2)),
  command("TTL", key),
  command("PTTL", key),
  command("EXPIRETIME", key),
  command("PEXPIRETIME", key),
  command("PERSIST", key),
  command("RENAME", key, key),
  command("RENAMENX", key, key),
  command("COPY", key, key, some(fc.constantFrom<Command>(["REPLACE"], ["DB", 0], ["DB"], ["foo"]), 2)),
  command("TOUCH", key, some(key)),
  command("KEYS", glob),
  command("SCAN", word(0, 0, "x"), word("COUNT"), word(1000, 0, "x")),
  command("SCAN", word(0), word("MATCH"), glob, word("TYPE"), word("string", "hash")),
  command("PING", optional(value)),
  command("ECHO", value),
  command("TIME"),
  command("PUBLISH", key, value),
  command("PUBSUB", word("CHANNELS", "channels"), optional(glob)),
  command("PUBSUB", word("NUMSUB"), some(key)),
  command("PUBSUB", optional(word("NUMPAT", "NUMSUB", "NOSUCH")), optional(key)),
  command("FLUSHALL"),
  command("FLUSHDB", word("ASYNC", "SYNC", "foo")),
  command("NOSUCH", some(value)),
  command("SET", key),
  command("GET"),
];

const collections: readonly fc.Arbitrary<Command>[] = [
  command("HSET", key, field, value, some(fc.tuple(field, value)), optional(field)),
  command("HGET", key, field),
  command("HMGET", key, field, some(field)),
  command("HGETALL", key),
  command("HDEL", key, field, some(field)),
  command("HEXISTS", key, field),
  command("HLEN", key),
  command("HINCRBY", key, field, integer),
  command("HKEYS", key),
  command("HVALS", key),
  command("HSETNX", key, field, value),
  command("HMSET", key, field, value, some(fc.tuple(field, value)), optional(field)),
  command("HSTRLEN", key, field),
  command("HINCRBYFLOAT", key, field, float),
  command("HRANDFIELD", key, all, optional(word("WITHVALUES", "foo"))),
  command("HSCAN", key, word(0, "x"), some(scanOption, 2)),
  command("SADD", key, field, some(field)),
  command("SREM", key, field, some(field)),
  command("SMEMBERS", key),
  command("SISMEMBER", key, field),
  command("SMISMEMBER", key, field, some(field)),
  command("SCARD", key),
  command("SMOVE", key, key, field),
  command("SPOP", key, fc.oneof(all, word(-1))),
  command("SRANDMEMBER", key, all, optional(word(1))),
  command("SSCAN", key, word(0, "x"), some(scanOption, 2)),
  command("SINTER", key, some(key)),
  command("SUNION", key, some(key)),
  command("SDIFF", key, some(key)),
  command("SINTERSTORE", key, key, some(key)),
  command("SUNIONSTORE", key, key, some(key)),
  command("SDIFFSTORE", key, key, some(key)),
  command("SINTERCARD", count, key, some(key), some(fc.tuple(word("LIMIT", "foo"), index), 1)),
  command("LPUSH", key, value, some(value)),
  command("RPUSH", key, value, some(value)),
  command("LPOP", key, optional(index)),
  command("RPOP", key, optional(index)),
  command("LLEN", key),
  command("LRANGE", key, index, index),
  command("LREM", key, index, value),
  command("LINDEX", key, index),
  command("LTRIM", key, index, index),
  command("LPUSHX", key, value, some(value)),
  command("RPUSHX", key, value, some(value)),
  command("LSET", key, index, value),
  command("LINSERT", key, word("BEFORE", "after", "foo"), value, value),
  command("LPOS", key, value, some(fc.tuple(word("RANK", "COUNT", "MAXLEN", "foo"), index), 2)),
  command("LPOS", key, word("v", "1"), some(fc.tuple(word("RANK", "COUNT"), word(1, 2, -1)), 2)),
  command("LMOVE", key, key, side, side),
  command("RPOPLPUSH", key, key),
  command("LMPOP", count, key, some(key, 1), side, some(fc.tuple(word("COUNT", "foo"), index), 1)),
];

const sortedSets: readonly fc.Arbitrary<Command>[] = [
  command("ZADD", key, some(zaddOption, 2), score, field, some(fc.tuple(score, field), 2), optional(field)),
  command("ZADD", key, word("GT", "LT"), word("INCR"), word("0", "1"), field),
  command("ZREM", key, field, some(field)),
  command("ZSCORE", key, field),
  command("ZCARD", key),
  command("ZRANK", key, field),
  command("ZREVRANK", key, field),
  command("ZMSCORE", key, field, some(field)),
  command("ZRANGE", key, index, index, some(rangeOption, 3)),
  command("ZRANGE", key, bound, bound, word("BYSCORE"), some(rangeOption, 3)),
  command("ZRANGE", key, lexBound, lexBound, word("BYLEX"), some(rangeOption, 3)),
  command("ZRANGE", key, anyBound, anyBound, word("BYSCORE", "bylex"), limit, some(rangeOption, 2)),
  command("ZREVRANGE", key, index, index, some(rangeOption, 1)),
  command("ZRANGEBYSCORE", key, bound, bound, some(rangeOption, 2)),
  command("ZRANGEBYSCORE", key, bound, bound, limit),
  command("ZREVRANGEBYSCORE", key, bound, bound, some(rangeOption, 2)),
  command("ZRANGEBYLEX", key, lexBound, lexBound, some(rangeOption, 2)),
  command("ZREVRANGEBYLEX", key, lexBound, lexBound, some(rangeOption, 2)),
  command("ZRANGESTORE", key, key, index, index, some(rangeOption, 2)),
  command("ZRANGESTORE", key, key, bound, bound, word("BYSCORE"), some(rangeOption, 2)),
  command("ZREMRANGEBYSCORE", key, bound, bound),
  command("ZREMRANGEBYRANK", key, index, index),
  command("ZREMRANGEBYLEX", key, lexBound, lexBound),
  command("ZLEXCOUNT", key, lexBound, lexBound),
  command("ZPOPMAX", key, optional(index)),
  command(
    "ZMPOP",
    count,
    key,
    some(key, 1),
    word("MIN", "max", "foo"),
    some(fc.tuple(word("COUNT"), index), 1),
  ),
  command("ZRANDMEMBER", key, all, optional(word("WITHSCORES", "foo"))),
  command("ZSCAN", key, word(0, "x"), some(scanOption, 2)),
  command("SADD", key, field, some(field)),
  command("ZUNION", count, key, some(key, 2), some(combineOption, 2)),
  command("ZINTER", count, key, some(key, 2), some(combineOption, 2)),
  command("ZDIFF", count, key, some(key, 2), some(combineOption, 1)),
  command("ZUNIONSTORE", key, count, key, some(key, 2), some(combineOption, 2)),
  command("ZINTERSTORE", key, count, key, some(key, 2), some(combineOption, 2)),
  command("ZDIFFSTORE", key, count, key, some(key, 2), some(combineOption, 1)),
  command("ZINTERCARD", count, key, some(key, 2), some(fc.tuple(word("LIMIT", "foo"), index), 1)),
  command("ZCOUNT", key, bound, bound),
  command("ZPOPMIN", key, optional(index)),
  command("ZINCRBY", key, score, field),
];

const bitOffset = word(0, 1, 7, 8, 9, 20, -1, "x");
const fieldType = word("u1", "u8", "i8", "i5", "u63", "i64", "u64", "x8", "u0");
const fieldOffset = word(0, 3, 8, "#0", "#1", "#2", "x", -1);
const fieldOperation = fc.oneof<fc.Arbitrary<Command>[]>(
  fc.tuple(word("GET", "get"), fieldType, fieldOffset),
  fc.tuple(word("SET"), fieldType, fieldOffset, integer),
  fc.tuple(word("INCRBY"), fieldType, fieldOffset, integer),
  fc.tuple(word("OVERFLOW"), word("WRAP", "SAT", "FAIL", "foo")),
);
const bitRange = fc.oneof<fc.Arbitrary<Command>[]>(
  fc.constant([]),
  fc.tuple(index),
  fc.tuple(index, index),
  fc.tuple(index, index, word("BYTE", "bit", "foo")),
);

/** Commands on bits. */
const bits: readonly fc.Arbitrary<Command>[] = [
  command("SET", key, value),
  command("SETBIT", key, bitOffset, word(0, 1, 1, 2)),
  command("GETBIT", key, bitOffset),
  command("BITCOUNT", key, bitRange),
  command("BITPOS", key, word(0, 1, 2), bitRange),
  command("BITOP", word("AND", "or", "XOR", "NOT", "foo"), key, key, some(key, 2)),
  command("BITFIELD", key, some(fieldOperation)),
  command("BITFIELD_RO", key, some(fieldOperation, 2)),
];

const manyElements = fc
  .tuple(key, fc.nat(1000), fc.constantFrom(10, 1_000))
  .map(
    ([name, first, count]): Command => [
      "PFADD",
      name,
      ...Array.from({ length: count }, (_, index) => `element ${first + index}`),
    ],
  );

/** Commands on HyperLogLogs. Their bytes are not compared: Redis has a shorter form for few elements. */
const hyperLogLogs: readonly fc.Arbitrary<Command>[] = [
  command("PFADD", key, some(fc.oneof(value, field))),
  command("PFADD", key, some(fc.string({ unit: codePoint, maxLength: 40 }))),
  manyElements,
  command("PFCOUNT", key, some(key, 2)),
  command("PFCOUNT", key),
  command("PFMERGE", key, some(key)),
  command("PEXPIRE", key, word(1_000_000)),
  command("SET", key, word("HYLL", "v")),
  command("SADD", key, field),
  command("DEL", key),
];

/** Arbitraries of one command, by group. All commands share three keys, so that they also meet values of other types. */
export const groups: Readonly<Record<string, fc.Arbitrary<Command>>> = {
  strings: fc.oneof(fc.oneof(...strings), fc.oneof(...strings), fc.oneof(...keys)),
  collections: fc.oneof(fc.oneof(...collections), fc.oneof(...collections), fc.oneof(...keys)),
  "sorted sets": fc.oneof(fc.oneof(...sortedSets), fc.oneof(...sortedSets), fc.oneof(...keys)),
  bits: fc.oneof(...bits),
  positions: fc.oneof(...positions),
  HyperLogLogs: fc.oneof(...hyperLogLogs),
  streams: fc.oneof(fc.oneof(...streams), fc.oneof(...streams), fc.oneof(...streams), fc.oneof(...keys)),
  "groups of streams": fc.oneof(...groupsOfStreams),
  everything: fc.oneof(...strings, ...keys, ...collections, ...sortedSets, ...streams, ...bits),
};

/** Commands that read the whole final state. */
export const inspection: readonly Command[] = ["a", "b", "c"].flatMap((name) => [
  ["TYPE", name],
  ["PTTL", name],
  ["GET", name],
  ["HGETALL", name],
  ["SMEMBERS", name],
  ["LRANGE", name, 0, -1],
  ["ZRANGE", name, 0, -1, "WITHSCORES"],
  ["XRANGE", name, "-", "+"],
]);
