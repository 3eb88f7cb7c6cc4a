import { checkNumber } from "../check.ts";
import type { Dialect } from "../endpoints/endpoint.ts";
import { systemRuntime } from "../runtime.ts";
import { toBytes, toText } from "./commands/bytes.ts";
import { acceptsWords, type Command, type Commands, wrongNumberOfArguments } from "./commands/command.ts";
import { hashCommands } from "./commands/hash.ts";
import { deleteIf, keyCommands } from "./commands/key.ts";
import { Keyspace } from "./commands/keyspace.ts";
import { listCommands } from "./commands/list.ts";
import { type ByteReply, type Reply, ReplyError, Status } from "./commands/reply.ts";
import { serverCommands } from "./commands/server.ts";
import { setCommands } from "./commands/set.ts";
import { sortedSetCommands } from "./commands/sorted-set.ts";
import { setIf, stringCommands } from "./commands/string.ts";
import { Lua } from "./lua/machine.ts";
import { Scripting } from "./lua/scripting.ts";

export { type Reply, ReplyError } from "./commands/reply.ts";

/** How an {@link Engine} tells the time, and whose commands it knows. */
export interface EngineOptions {
  /** The clock that keys expire by: ms since 1970. Default: the system's. */
  readonly now?: () => number;
  /**
   * `upstash` adds what Redis 7 lacks: DELEX, `SET … IFEQ | IFNE`, and scripts that begin with
   * `#!lua flags=allow-key-locking`. `redis` refuses them with Redis 7's own errors. Default `upstash`.
   */
  readonly dialect?: Dialect;
  /**
   * How long a script may run, in ms of the system's clock: like Redis's `lua-time-limit`, after which SCRIPT KILL is
   * possible; here it is killed then. What it has written stays. From 1 to 2 147 483 647, default 5000. A single call
   * of a library function (`string.rep`, a pattern that backtracks) is not interrupted.
   */
  readonly luaTimeLimit?: number;
}

const redisCommands: Commands = {
  ...serverCommands,
  ...keyCommands,
  ...stringCommands,
  ...hashCommands,
  ...setCommands,
  ...sortedSetCommands,
  ...listCommands,
};

const upstashCommands: Commands = { ...redisCommands, SET: setIf, DELEX: deleteIf };

/**
 * A small Redis in this process: strings, hashes, sets, sorted sets, lists, expiry and Lua scripts, with the
 * replies and errors of Redis 7. Commands are synchronous and atomic. The data is in memory, for tests and
 * local development.
 *
 * @example
 * const engine = new Engine({ now: () => clock });
 * engine.execute(["SET", "greeting", "hello", "PX", 1000]); // "OK"
 */
export class Engine {
  readonly #now: () => number;
  readonly #commands: Commands;
  readonly #space = new Keyspace();
  readonly #scripting: Scripting;
  #billed = 0;

  constructor(options: EngineOptions = {}) {
    this.#now = options.now ?? (() => systemRuntime.now());
    const dialect = options.dialect ?? "upstash";
    const timeLimit = checkNumber("luaTimeLimit", options.luaTimeLimit ?? 5_000, 1, 2 ** 31 - 1);
    this.#commands = dialect === "upstash" ? upstashCommands : redisCommands;
    this.#scripting = new Scripting(
      dialect,
      (name) => this.#find(name),
      (command, words) => this.#run(command, words),
      // Not the clock of keys, which may stand still: this is about the time that the process loses.
      () => new Lua(timeLimit, () => systemRuntime.monotonic()),
    );
  }

  /** Commands billed so far, as Upstash counts: one for each, and one more for each that a script calls. */
  get billed(): number {
    return this.#billed;
  }

  /**
   * Executes one command: its name, in any case, and its arguments. Text goes in and comes out as UTF-8.
   *
   * @throws ReplyError when Redis would answer with an error
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
   * Executes one command of byte strings (bytes.ts). Its reply tells a status from a string, its error is a byte
   * string, too.
   *
   * @throws ReplyError when Redis would answer with an error
   */
  executeBytes(command: readonly string[]): ByteReply {
    const error = this.refusal(command);
    if (error) throw error;
    const [name, ...words] = command as [string, ...string[]];
    // The clock is read once: within a command, and a script is one, no key expires.
    this.#space.now = Math.floor(this.#now());
    const upper = name.toUpperCase();
    if (!this.#scripting.knows(upper)) return this.#run(this.#find(upper)!, words);
    this.#billed++;
    return this.#scripting.execute(upper, words);
  }

  /**
   * The error of a command that cannot be executed whatever the data is: its name is unknown, or it has too few or
   * too many words. A transaction with such a command is discarded. Undefined when it can.
   */
  refusal([name, ...words]: readonly string[]): ReplyError | undefined {
    if (name === undefined) return new ReplyError("ERR empty command");
    const upper = name.toUpperCase();
    const command = this.#find(upper);
    const known = command !== undefined || this.#scripting.knows(upper);
    if (!known) return unknownCommand(name, words);
    const accepted = command
      ? acceptsWords(command, words.length + 1)
      : this.#scripting.accepts(upper, words);
    return accepted ? undefined : wrongNumberOfArguments(name.toLowerCase());
  }

  /** Loses all data and all cached scripts, as a restart without persistence does. */
  flush(): void {
    this.#space.clear();
    this.#scripting.flush();
  }

  #run(command: Command, words: readonly string[]): ByteReply {
    this.#billed++;
    return command.run(this.#space, words);
  }

  #find(name: string): Command | undefined {
    // In capitals, as nothing is that an object inherits.
    return this.#commands[name];
  }
}

function toReply(reply: ByteReply): Reply {
  if (typeof reply === "string") return toText(reply);
  if (reply instanceof Status) return toText(reply.text);
  // An error inside a list, which only a script can make: JSON has no other form for it.
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
