import { type Argument, nameOf, textOf } from "../argument.ts";

// What Upstash's REST API does not offer: a request has no connection to keep a state on, cannot wait, and
// has no business with the server's administration.
const unavailable = new Set(
  [
    "BLPOP BRPOP BLMOVE BLMPOP BRPOPLPUSH BZPOPMIN BZPOPMAX BZMPOP WAIT WAITAOF",
    "AUTH HELLO SELECT QUIT RESET CLIENT ASKING READONLY READWRITE SWAPDB MOVE",
    "MULTI EXEC DISCARD WATCH UNWATCH",
    "SUBSCRIBE UNSUBSCRIBE PSUBSCRIBE PUNSUBSCRIBE SSUBSCRIBE SUNSUBSCRIBE MONITOR",
    "ACL BGREWRITEAOF BGSAVE CLUSTER CONFIG DEBUG FAILOVER LASTSAVE LATENCY LOLWUT MEMORY MIGRATE MODULE",
    "PFDEBUG PFSELFTEST PSYNC REPLCONF REPLICAOF ROLE SAVE SHUTDOWN SLAVEOF SLOWLOG SYNC",
  ].flatMap((line) => line.split(" ")),
);

// What a read-only token may do. KEYS and SCAN read, too, but Upstash holds them back.
const reading = new Set(
  [
    "PING ECHO TIME DBSIZE EXISTS TYPE TTL PTTL EXPIRETIME PEXPIRETIME RANDOMKEY TOUCH OBJECT DUMP",
    "GET MGET STRLEN GETRANGE SUBSTR LCS DIGEST BITCOUNT BITPOS GETBIT BITFIELD_RO PFCOUNT",
    "HGET HMGET HGETALL HKEYS HVALS HLEN HEXISTS HSTRLEN HRANDFIELD HSCAN",
    "LINDEX LLEN LPOS LRANGE",
    "SCARD SISMEMBER SMISMEMBER SMEMBERS SRANDMEMBER SINTER SINTERCARD SUNION SDIFF SSCAN",
    "ZCARD ZCOUNT ZLEXCOUNT ZRANGE ZRANGEBYSCORE ZRANGEBYLEX ZREVRANGE ZREVRANGEBYSCORE ZREVRANGEBYLEX",
    "ZRANK ZREVRANK ZSCORE ZMSCORE ZRANDMEMBER ZDIFF ZINTER ZINTERCARD ZUNION ZSCAN",
    "GEODIST GEOHASH GEOPOS GEOSEARCH GEORADIUS_RO GEORADIUSBYMEMBER_RO",
    "XLEN XRANGE XREVRANGE XPENDING XINFO XREAD SORT_RO EVAL_RO EVALSHA_RO FCALL_RO",
  ].flatMap((line) => line.split(" ")),
);

/** Whether the command, by its name, changes nothing. */
export function isReading(command: readonly Argument[]): boolean {
  return reading.has(nameOf(command));
}

/** The error that Upstash would answer without running the command; undefined when it may run. */
export function refusal(command: readonly Argument[], readOnly: boolean): string | undefined {
  const name = nameOf(command);
  // All requests share one connection, so one that waits would hold up every other.
  const waits = (name === "XREAD" || name === "XREADGROUP") && blocks(command);
  if (unavailable.has(name) || waits) return `ERR Command is not available: '${textOf(command[0]!)}'`;
  if (readOnly && !reading.has(name)) {
    return `NOPERM this user has no permissions to run the '${name.toLowerCase()}' command or its subcommand`;
  }
  return undefined;
}

function blocks(command: readonly Argument[]): boolean {
  const words = command.map((argument) => textOf(argument).toUpperCase());
  const streams = words.indexOf("STREAMS");
  return words.slice(1, streams < 0 ? undefined : streams).includes("BLOCK");
}
