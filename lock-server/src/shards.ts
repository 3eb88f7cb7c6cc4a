import { integer, ReplyError } from "./engine/reply-error.ts";

/**
 * The part of a key that decides where it is stored: what its first braces contain, as in Redis Cluster. All keys of one
 * resource of this package have the same.
 */
export function tagOf(key: string): string {
  return /^[^{]*\{([^}]+)\}/.exec(key)?.[1] ?? key;
}

/** The number of a tag's shard, by FNV-1a: the same for ever. */
export function shardOf(tag: string, shards: number): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(tag)) hash = Math.imul(hash ^ byte, 0x01000193);
  return (hash >>> 0) % shards;
}

/** The keys and channels of a command. @throws ReplyError where their number is none */
export function keysOf([name = "", ...words]: readonly string[]): readonly string[] {
  switch (name.toUpperCase()) {
    case "EVAL":
    case "EVALSHA":
      return words.slice(2, 2 + integer(words[1] ?? ""));
    case "MGET":
    case "DEL":
    case "EXISTS":
      return words;
    case "PUBSUB":
      return words.slice(1);
    case "PING":
    case "TIME":
    case "SCRIPT":
      return [];
    default:
      return words.slice(0, 1);
  }
}

/**
 * The shard of a command.
 *
 * @throws ReplyError where its keys are in several
 */
export function shardOfCommand(command: readonly string[], shards: number): number {
  if (shards === 1) return 0;
  const found = new Set(keysOf(command).map((key) => shardOf(tagOf(key), shards)));
  if (found.size < 2) return found.values().next().value ?? 0;
  throw new ReplyError(
    `CROSSSLOT the names of one request are in ${found.size} shards: give them the same {tag}, or use one shard`,
  );
}
