import type { Command, CommandContext, CommandTable } from "../../../lock-server/src/engine/command.ts";
import { commands } from "../../../lock-server/src/engine/commands.ts";
import { commandOf, execute } from "../../../lock-server/src/engine/execute.ts";
import { Keyspace } from "../../../lock-server/src/engine/keyspace.ts";
import { MapStorage } from "../../../lock-server/src/engine/map-storage.ts";
import { ReplyError, syntaxError } from "../../../lock-server/src/engine/reply-error.ts";
import type { Reply, Twin } from "../../../lock-server/src/twins/twin.ts";
import { systemRuntime } from "../runtime.ts";
import { type Dialect, dialectCheck } from "./dialect.ts";
import { scriptCommands, upstashFlag } from "./scripts.ts";
import { toolCommands } from "./tools.ts";

/** Options of an {@link Engine}. */
export interface EngineOptions {
  /** The clock by which keys expire, in ms since 1970. Default: the system's. */
  readonly now?: () => number;
  /**
   * The commands that it has. `redis`: no `SET … IFEQ` and no DELEX, as Redis before 8.4. `redis-8.4`: with them. `upstash`:
   * scripts may also begin with `#!lua flags=allow-key-locking`. Default `upstash`.
   */
  readonly dialect?: Dialect;
}

/** What is pushed to a subscriber: `subscribe`, the channel and how many it has now; `message`, the channel and the payload. */
export type Push = readonly (string | number)[];

const remedy = "Install redis-server: redis-rest-local starts it";

/** SET as it was before Redis 8.4. */
const setWithoutIfEqual: Command = (context, words) => {
  if (words.slice(2).some((word) => word.toUpperCase() === "IFEQ")) throw syntaxError();
  return commands.SET![0](context, words);
};

/** What a server of a dialect has of redlock-edge's commands. */
function commandsOf(dialect: Dialect): CommandTable {
  if (dialect !== "redis") return commands;
  const { DELEX: _, ...others } = commands;
  return { ...others, SET: [setWithoutIfEqual, commands.SET![1]] };
}

/** The error for what this engine does not have. */
function unknown(what: string): ReplyError {
  return new ReplyError(
    what === "script"
      ? `ERR unknown script: without redis-server there is no Lua, and only the scripts of this version of redlock-edge run. ${remedy}`
      : `ERR unknown ${what}: without redis-server there is only what redlock-edge sends. ${remedy}`,
  );
}

/**
 * What redlock-edge sends, in this process, without a Redis: its commands, and its scripts as the lock server of
 * `redlock-edge-server` runs them. Commands are synchronous and atomic. The data is in memory only.
 *
 * @example
 * const engine = new Engine({ now: () => clock });
 * engine.execute(["SET", "greeting", "hello", "PX", 1000]); // "OK"
 */
export class Engine {
  readonly #now: () => number;
  /** Whether scripts may begin with Upstash's flag. */
  readonly #hasFlag: boolean;
  readonly #storage = new MapStorage();
  readonly #loaded = new Map<string, Twin>();
  readonly #subscribers = new Map<string, Set<(push: Push) => void>>();
  readonly #context: CommandContext;

  /**
   * An engine without data.
   *
   * @throws RangeError for an unknown dialect
   */
  constructor(options: EngineOptions = {}) {
    this.#now = options.now ?? (() => systemRuntime.now());
    const { dialect = "upstash" } = options;
    dialectCheck("dialect", dialect as never);
    this.#hasFlag = dialect === "upstash";
    const space = new Keyspace(this.#storage);
    const all = () => this.#storage.keys.filter((key) => space.entry(key));
    this.#context = {
      space,
      commands: {
        ...commandsOf(dialect),
        ...scriptCommands(this.#loaded),
        ...toolCommands({ all, clear: () => this.#storage.clear() }),
      },
      scripts: this.#loaded,
      executed: 0,
      publish: (channel, payload) => this.#publish(channel, payload),
      subscribers: (channel) => this.#subscribers.get(channel)?.size ?? 0,
      unknown,
    };
  }

  /** Commands billed so far, as Upstash counts them: one for each command, and one for each call in a script. */
  get billed(): number {
    return this.#context.executed;
  }

  /**
   * Executes one command: its name in any case, and its arguments.
   *
   * @throws ReplyError when Redis would answer with an error, and for what this engine does not have
   * @example
   * engine.execute(["SET", "lock", "token", "NX", "PX", 10_000]); // "OK"
   */
  execute(command: readonly (string | number)[]): Reply {
    const words = command.map(String);
    const refused = this.#refusalOfFlag(words);
    if (refused) throw refused;
    // The clock is read once, so that no key expires during a command or a script.
    this.#context.space.now = Math.floor(this.#now());
    return execute(this.#context, words);
  }

  /**
   * The error of a command that fails for any data: its name is unknown, or it has too few or too many arguments. Such a
   * command discards a transaction. Undefined for every other command.
   */
  refusal(command: readonly string[]): ReplyError | undefined {
    try {
      commandOf(this.#context, command);
      return this.#refusalOfFlag(command);
    } catch (error) {
      return error as ReplyError;
    }
  }

  /** The error of Redis for a script with a flag that only Upstash knows. */
  #refusalOfFlag([name = "", first = "", second = ""]: readonly string[]): ReplyError | undefined {
    if (this.#hasFlag) return undefined;
    const text = /^EVAL$/i.test(name) ? first : /^SCRIPT$/i.test(name) ? second : "";
    if (!text.startsWith(upstashFlag)) return undefined;
    return new ReplyError("ERR Unexpected flag in script shebang: allow-key-locking");
  }

  /**
   * Subscribes to channels, and returns a function that ends it. As at Upstash, each of the two is billed as one command.
   *
   * @param receive is called with every confirmation, before this returns, and with every message. It may be called while
   *   a script runs, and must not execute commands itself
   */
  subscribe(channels: readonly string[], receive: (push: Push) => void): () => void {
    this.#context.executed += 1;
    // One of its own: the same function may subscribe more than once.
    const own = (push: Push) => receive(push);
    const confirmed = new Set<string>();
    for (const channel of channels) {
      const receivers = this.#subscribers.get(channel) ?? new Set();
      this.#subscribers.set(channel, receivers.add(own));
      confirmed.add(channel);
      receive(["subscribe", channel, confirmed.size]);
    }
    let isSubscribed = true;
    return () => {
      if (!isSubscribed) return;
      isSubscribed = false;
      this.#context.executed += 1;
      for (const channel of confirmed) this.#subscribers.get(channel)?.delete(own);
    };
  }

  /** Deletes all data, and forgets all scripts, as a restart without persistence does. */
  flush(): void {
    this.#storage.clear();
    this.#loaded.clear();
  }

  /** Returns how many subscribers there were. */
  #publish(channel: string, payload: string): number {
    const receivers = [...(this.#subscribers.get(channel) ?? [])];
    for (const receive of receivers) receive(["message", channel, payload]);
    return receivers.length;
  }
}
