import { checkNumber } from "../check.ts";
import { systemRuntime } from "../runtime.ts";
import { bitCommands, combineMore } from "./commands/bits.ts";
import { toBytes, toText } from "./commands/bytes.ts";
import { acceptsWords, type Command, type Commands, wrongNumberOfArguments } from "./commands/command.ts";
import { geoCommands } from "./commands/geo.ts";
import { hashCommands } from "./commands/hash.ts";
import { hashExpiryCommands } from "./commands/hash-expiry.ts";
import { hyperLogLogCommands } from "./commands/hyper-log-log.ts";
import { deleteIf, keyCommands, upstashKeyCommands } from "./commands/key.ts";
import { Keyspace } from "./commands/keyspace.ts";
import { listCommands } from "./commands/list.ts";
import { memorySubcommands } from "./commands/memory.ts";
import { PubSub, type Push, type SubscriptionKind } from "./commands/pub-sub.ts";
import { type ByteReply, type Reply, ReplyError, Status } from "./commands/reply.ts";
import { serverCommands } from "./commands/server.ts";
import { setCommands } from "./commands/set.ts";
import { sortedSetCommands } from "./commands/sorted-set.ts";
import { sortedSetAlgebraCommands } from "./commands/sorted-set-algebra.ts";
import { sortedSetRangeCommands } from "./commands/sorted-set-range.ts";
import { streamCommands } from "./commands/stream.ts";
import { groupSubcommands, infoSubcommands } from "./commands/stream-admin.ts";
import { streamDeleteCommands } from "./commands/stream-delete.ts";
import { streamGroupCommands } from "./commands/stream-group.ts";
import { setIf, stringCommands } from "./commands/string.ts";
import { checkDialect, type Dialect } from "./dialect.ts";
import { Lua } from "./lua/machine.ts";
import { Scripting } from "./lua/scripting.ts";

export type { Push, SubscriptionKind } from "./commands/pub-sub.ts";
export { type Reply, ReplyError } from "./commands/reply.ts";
export { checkDialect, type Dialect } from "./dialect.ts";

/** Options of an {@link Engine}. */
export interface EngineOptions {
  /** The clock by which keys expire, in ms since 1970. Default: the system's. */
  readonly now?: () => number;
  /**
   * The commands that it has. `redis`: those of Redis 7.0. `redis-8.4` adds `SET … IFEQ | IFNE`, DELEX, expiry of the
   * fields of a hash, and more of later versions (see docs/reference.md). `upstash` adds to these scripts that begin
   * with `#!lua flags=allow-key-locking`, and what only Upstash has. What it does not have, it refuses with the errors of
   * Redis. Default `upstash`.
   */
  readonly dialect?: Dialect;
  /** A number in [0, 1), for commands that draw: SPOP, RANDOMKEY and others. Default: the platform's. */
  readonly random?: () => number;
  /**
   * How long a script may run, in ms of the system's clock. After Redis's `lua-time-limit` SCRIPT KILL becomes possible;
   * here the script is killed. What it has written stays. From 1 to 2 147 483 647, default 5000 (5 seconds). A single
   * call of a library function (`string.rep`, a pattern that backtracks) is not interrupted.
   */
  readonly luaTimeLimit?: number;
}

const redisCommands: Commands = {
  ...serverCommands,
  ...keyCommands,
  ...stringCommands,
  ...bitCommands,
  ...hyperLogLogCommands,
  ...hashCommands,
  ...setCommands,
  ...sortedSetCommands,
  ...sortedSetRangeCommands,
  ...sortedSetAlgebraCommands,
  ...geoCommands,
  ...listCommands,
  ...streamCommands,
  ...streamGroupCommands,
};

const laterCommands: Commands = {
  ...redisCommands,
  ...hashExpiryCommands,
  ...streamDeleteCommands,
  SET: setIf,
  DELEX: deleteIf,
  BITOP: combineMore,
};

const commandsOf: Readonly<Record<Dialect, Commands>> = {
  redis: redisCommands,
  "redis-8.4": laterCommands,
  upstash: { ...laterCommands, ...upstashKeyCommands },
};

/** The subcommands of commands that do nothing without one. */
const containers: Readonly<Record<string, Commands>> = {
  XGROUP: groupSubcommands,
  XINFO: infoSubcommands,
  MEMORY: memorySubcommands,
};

/**
 * A small Redis in this process, for tests and local development: strings, hashes, sets, sorted sets, positions,
 * HyperLogLogs, lists, streams, expiry, pub/sub and Lua scripts, with the replies and errors of Redis 7. Commands are
 * synchronous and atomic. The data is in memory only.
 *
 * @example
 * const engine = new Engine({ now: () => clock });
 * engine.execute(["SET", "greeting", "hello", "PX", 1000]); // "OK"
 */
export class Engine {
  readonly #now: () => number;
  readonly #commands: Commands;
  readonly #space: Keyspace;
  readonly #pubSub = new PubSub();
  readonly #scripting: Scripting;
  #billed = 0;

  /** @throws TypeError | RangeError for an unknown dialect, or a `luaTimeLimit` that is not a number or out of range */
  constructor(options: EngineOptions = {}) {
    this.#space = new Keyspace(options.random ?? (() => systemRuntime.random()));
    this.#now = options.now ?? (() => systemRuntime.now());
    const dialect = checkDialect(options.dialect) ?? "upstash";
    const timeLimit = checkNumber("luaTimeLimit", options.luaTimeLimit ?? 5_000, 1, 2 ** 31 - 1);
    this.#commands = commandsOf[dialect];
    this.#scripting = new Scripting(
      dialect,
      (name, words) => this.#find(name, words),
      (command, words) => this.#run(command, words),
      // Not the clock of keys, which a test may stop: the limit is about real time.
      () => new Lua(timeLimit, () => performance.now()),
    );
  }

  /** Commands billed so far, as Upstash counts them: one for each command, and one for each call in a script. */
  get billed(): number {
    return this.#billed;
  }

  /**
   * Executes one command: its name in any case, and its arguments. Strings are stored as UTF-8.
   *
   * @throws ReplyError when Redis would answer with an error
   * @example
   * engine.execute(["INCR", "counter"]); // 1
   */
  execute(command: readonly (string | number)[]): Reply {
    try {
      return toReply(this.executeBytes(command.map((word) => toBytes(String(word)))));
    } catch (error) {
      if (error instanceof ReplyError) throw new ReplyError(toText(error.message));
      throw error;
    }
  }

  /**
   * Executes one command of byte strings (see bytes.ts). Unlike {@link execute}, its reply distinguishes a status from a
   * string, and the message of its error is a byte string.
   *
   * @throws ReplyError when Redis would answer with an error
   */
  executeBytes(command: readonly string[]): ByteReply {
    const error = this.refusal(command);
    if (error) throw error;
    const upper = command[0]!.toUpperCase();
    const words = command.slice(1);
    // The clock is read once, so that no key expires during a command or a script.
    this.#space.now = Math.floor(this.#now());
    const found = this.#find(upper, words);
    if (found) return this.#run(found, words);
    this.#billed++;
    return this.#scripting.execute(upper, words);
  }

  /**
   * The error of a command that fails for any data: its name is unknown, or it has too few or too many arguments. Such a
   * command discards a transaction. Undefined for every other command.
   */
  refusal(command: readonly string[]): ReplyError | undefined {
    const name = command[0];
    if (name === undefined) return new ReplyError("ERR empty command");
    const upper = name.toUpperCase();
    const words = command.slice(1);
    const found = this.#find(upper, words);
    if (found && acceptsWords(found, command.length)) return undefined;
    const lower = name.toLowerCase();
    if (this.#subcommands(upper)) {
      const [subcommand] = words;
      if (subcommand === undefined) return wrongNumberOfArguments(lower);
      if (found) return wrongNumberOfArguments(`${lower}|${subcommand.toLowerCase()}`);
      return new ReplyError(`ERR unknown subcommand '${subcommand.slice(0, 128)}'. Try ${upper} HELP.`);
    }
    if (!found && !this.#scripting.knows(upper)) return unknownCommand(name, words);
    if (!found && this.#scripting.accepts(upper, words)) return undefined;
    return wrongNumberOfArguments(lower);
  }

  /**
   * Subscribes to channels, or to patterns of channels, and returns a function that ends it. As at Upstash, each of the two
   * is billed as one command.
   *
   * @param names byte strings (see bytes.ts)
   * @param receive is called with every confirmation, before this returns, and with every message. It may be called while
   *   a script runs, and must not execute commands itself
   */
  subscribe(kind: SubscriptionKind, names: readonly string[], receive: (push: Push) => void): () => void {
    this.#billed++;
    const unsubscribe = this.#pubSub.subscribe(kind, names, receive);
    let subscribed = true;
    return () => {
      if (!subscribed) return;
      subscribed = false;
      this.#billed++;
      unsubscribe();
    };
  }

  /** Deletes all data, cached scripts and functions, as a restart without persistence does. */
  flush(): void {
    this.#space.clear();
    this.#scripting.reset();
  }

  #run(command: Command, words: readonly string[]): ByteReply {
    this.#billed++;
    return command.run(this.#space, words);
  }

  /** A command, or the subcommand that the first of its words names. All names are in upper case. */
  #find(name: string, words: readonly string[]): Command | undefined {
    const subcommands = this.#subcommands(name);
    if (subcommands) return subcommands[(words[0] ?? "").toUpperCase()];
    // Safe without hasOwn: a name is in upper case, and no inherited property is.
    return this.#commands[name] ?? this.#pubSub.commands[name];
  }

  /** The subcommands of a command that does nothing without one. */
  #subcommands(name: string): Commands | undefined {
    return name === "PUBSUB" ? this.#pubSub.subcommands : containers[name];
  }
}

function toReply(reply: ByteReply): Reply {
  if (typeof reply === "string") return toText(reply);
  if (reply instanceof Status) return toText(reply.text);
  // An error inside a list, which only a script can return: JSON has no other form for it.
  if (reply instanceof ReplyError) return toText(reply.message);
  return Array.isArray(reply) ? reply.map(toReply) : (reply as number | null);
}

function unknownCommand(name: string, words: readonly string[]): ReplyError {
  let quoted = "";
  for (const word of words) {
    if (quoted.length >= 128) break;
    quoted += `'${word.slice(0, 128 - quoted.length)}' `;
  }
  return new ReplyError(`ERR unknown command '${name.slice(0, 128)}', with args beginning with: ${quoted}`);
}
