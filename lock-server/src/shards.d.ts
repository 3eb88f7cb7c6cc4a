/**
 * The part of a key that decides where it is stored: what its first braces contain, as in Redis Cluster. All keys of one
 * resource of this package have the same.
 */
export declare function tagOf(key: string): string;
/** The number of a tag's shard, by FNV-1a: the same for ever. */
export declare function shardOf(tag: string, shards: number): number;
/** The keys and channels of a command. @throws ReplyError where their number is none */
export declare function keysOf([name, ...words]: readonly string[]): readonly string[];
/**
 * The shard of a command.
 *
 * @throws ReplyError where its keys are in several
 */
export declare function shardOfCommand(command: readonly string[], shards: number): number;
