import { ReplyError } from "../../../../lock-server/src/engine/reply-error.ts";
import { type Command, nameOf } from "../backend.ts";

// Commands that Upstash's REST API does not offer: they block, change the state of a connection, or administer the
// server.
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

// Commands that a read-only token allows. KEYS and SCAN read as well, but Upstash refuses them.
const reading = new Set(
  [
    "PING ECHO TIME DBSIZE EXISTS TYPE TTL PTTL EXPIRETIME PEXPIRETIME RANDOMKEY TOUCH OBJECT DUMP MEMORY",
    "GET MGET STRLEN GETRANGE SUBSTR LCS DIGEST BITCOUNT BITPOS GETBIT BITFIELD_RO PFCOUNT",
    "HGET HMGET HGETALL HKEYS HVALS HLEN HEXISTS HSTRLEN HRANDFIELD HSCAN",
    "HTTL HPTTL HEXPIRETIME HPEXPIRETIME",
    "LINDEX LLEN LPOS LRANGE",
    "SCARD SISMEMBER SMISMEMBER SMEMBERS SRANDMEMBER SINTER SINTERCARD SUNION SDIFF SSCAN",
    "ZCARD ZCOUNT ZLEXCOUNT ZRANGE ZRANGEBYSCORE ZRANGEBYLEX ZREVRANGE ZREVRANGEBYSCORE ZREVRANGEBYLEX",
    "ZRANK ZREVRANK ZSCORE ZMSCORE ZRANDMEMBER ZDIFF ZINTER ZINTERCARD ZUNION ZSCAN",
    "GEODIST GEOHASH GEOPOS GEOSEARCH GEORADIUS_RO GEORADIUSBYMEMBER_RO",
    "XLEN XRANGE XREVRANGE XPENDING XINFO XREAD SORT_RO EVAL_RO EVALSHA_RO FCALL_RO",
  ].flatMap((line) => line.split(" ")),
);

/** Whether a command only reads, by its name. */
export function isReading(command: Command): boolean {
  return reading.has(nameOf(command));
}

/** The error with which Upstash refuses a command without running it; undefined if it may run. */
export function refusal(command: Command, readOnly: boolean): ReplyError | undefined {
  const name = nameOf(command);
  // All requests share one connection: a blocking command would delay every other one.
  const isBlocking = (name === "XREAD" || name === "XREADGROUP") && hasBlockOption(command);
  // Of MEMORY, Upstash has USAGE.
  const isUsage = name === "MEMORY" && (command[1] ?? "").toUpperCase() === "USAGE";
  if ((unavailable.has(name) && !isUsage) || isBlocking) {
    return new ReplyError(`ERR Command is not available: '${command[0]}'`);
  }
  return readOnly && !reading.has(name) ? noPermission(command) : undefined;
}

export function noPermission(command: Command): ReplyError {
  const name = nameOf(command).toLowerCase();
  return new ReplyError(`NOPERM this user has no permissions to run the '${name}' command or its subcommand`);
}

function hasBlockOption(command: Command): boolean {
  const words = command.map((argument) => argument.toUpperCase());
  const streams = words.indexOf("STREAMS");
  return words.slice(1, streams < 0 ? undefined : streams).includes("BLOCK");
}
