import { acceptsWords, type Command, keysOf, wrongNumberOfArguments } from "../commands/command.ts";
import { integer } from "../commands/numbers.ts";
import { type ByteReply, ok, ReplyError } from "../commands/reply.ts";
import type { Dialect } from "../dialect.ts";
import { Functions } from "./functions.ts";
import type { Chunk, Lua } from "./machine.ts";
import { sha1 } from "./sha1.ts";

/** A compiled script with the flags of its first line. */
interface Script {
  readonly chunk: Chunk;
  readonly readOnly: boolean;
  /** Upstash's `allow-key-locking`: the script may only access the keys in KEYS. */
  readonly declaredKeysOnly: boolean;
}

const redisFlags = ["no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];

/** The commands on scripts and functions of an engine, with the cache of compiled scripts for EVALSHA. */
export class Scripting {
  readonly #dialect: Dialect;
  readonly #find: (name: string, words: readonly string[]) => Command | undefined;
  readonly #execute: (command: Command, words: readonly string[]) => ByteReply;
  readonly #scripts = new Map<string, Script>();
  readonly #functions: Functions;
  readonly #makeLua: () => Lua;
  // Created at the first script: tests of plain commands need no Lua machine.
  #lua: Lua | undefined;

  /**
   * @param dialect whether `allow-key-locking` is allowed
   * @param find returns a command that scripts may call, by its name in upper case and its arguments
   * @param execute runs a command for a script, and bills it
   * @param makeLua creates the machine that runs the scripts
   */
  constructor(
    dialect: Dialect,
    find: (name: string, words: readonly string[]) => Command | undefined,
    execute: (command: Command, words: readonly string[]) => ByteReply,
    makeLua: () => Lua,
  ) {
    this.#makeLua = makeLua;
    this.#dialect = dialect;
    this.#find = find;
    this.#execute = execute;
    this.#functions = new Functions(
      dialect,
      () => this.#machine(),
      (words, readOnly) => this.#callFromScript(words, readOnly, undefined),
    );
  }

  /** Whether a name, in upper case, is a command of this class: EVAL, FCALL and the like, SCRIPT or FUNCTION. */
  knows(name: string): boolean {
    return /^(?:(?:EVAL(?:SHA)?|FCALL)(?:_RO)?|SCRIPT|FUNCTION)$/.test(name);
  }

  /** Whether such a command accepts this number of arguments. */
  accepts(name: string, words: readonly string[]): boolean {
    return words.length >= (name === "SCRIPT" || name === "FUNCTION" ? 1 : 2);
  }

  /**
   * Executes a command for which {@link knows} and {@link accepts} are true.
   *
   * @param name in upper case
   * @param words its arguments
   * @throws ReplyError when Redis would answer with an error
   */
  execute(name: string, words: readonly string[]): ByteReply {
    if (name === "SCRIPT") return this.#script(words);
    if (name === "FUNCTION") return this.#functions.manage(words);
    if (name.startsWith("FCALL")) return this.#functions.call(words, name.endsWith("_RO"));
    return this.#evaluate(words, name.startsWith("EVALSHA"), name.endsWith("_RO"));
  }

  /** Forgets every script and every function, as a restart without persistence does. */
  reset(): void {
    this.flush();
    this.#functions.flush();
  }

  /** Forgets every script: for SCRIPT FLUSH. EVALSHA finds none until its text is sent again. */
  flush(): void {
    for (const { chunk } of this.#scripts.values()) this.#lua?.release(chunk);
    this.#scripts.clear();
  }

  #evaluate(words: readonly string[], bySha: boolean, readOnly: boolean): ByteReply {
    const [body, count, ...rest] = words as [string, string, ...string[]];
    const keyCount = integer(count);
    if (keyCount > rest.length)
      throw new ReplyError("ERR Number of keys can't be greater than number of args");
    if (keyCount < 0n) throw new ReplyError("ERR Number of keys can't be negative");
    const sha = bySha ? body.toLowerCase() : sha1(body);
    const script = this.#scripts.get(sha) ?? (bySha ? undefined : this.#load(sha, body));
    if (!script) throw new ReplyError("NOSCRIPT No matching script. Please use EVAL.");

    const keys = rest.slice(0, Number(keyCount));
    const declared = script.declaredKeysOnly ? new Set(keys) : undefined;
    return this.#machine().run(script.chunk, {
      name: sha,
      keys,
      values: rest.slice(keys.length),
      command: (call) => this.#callFromScript(call, readOnly || script.readOnly, declared),
    });
  }

  #callFromScript(
    [name, ...words]: readonly string[],
    readOnly: boolean,
    declared: ReadonlySet<string> | undefined,
  ): ByteReply {
    const upper = name!.toUpperCase();
    if (this.knows(upper)) throw new ReplyError("ERR This Redis command is not allowed from script");
    const command = this.#find(upper, words);
    if (!command) throw new ReplyError("ERR Unknown Redis command called from script");
    if (!acceptsWords(command, words.length + 1)) {
      throw new ReplyError("ERR Wrong number of args calling Redis command from script");
    }
    if (readOnly && command.write) {
      throw new ReplyError("ERR Write commands are not allowed from read-only scripts.");
    }
    if (declared) {
      const flagged = "in Lua scripts when 'allow-key-locking' flag is set";
      if (command.wholeDatabase && command.write) {
        throw new ReplyError(`ERR ${upper} is not allowed ${flagged}`);
      }
      const undeclared = keysOf(command, words).find((key) => !declared.has(key));
      if (undeclared !== undefined) {
        throw new ReplyError(`ERR Dynamic keys are not allowed ${flagged}. Key was: ${undeclared}`);
      }
    }
    return this.#execute(command, words);
  }

  #script([subcommand, ...words]: readonly string[]): ByteReply {
    switch (subcommand!.toUpperCase()) {
      case "LOAD": {
        if (words.length !== 1) throw wrongNumberOfArguments("script|load");
        const sha = sha1(words[0]!);
        if (!this.#scripts.has(sha)) this.#load(sha, words[0]!);
        return sha;
      }
      case "EXISTS":
        if (words.length === 0) throw wrongNumberOfArguments("script|exists");
        return words.map((sha) => (this.#scripts.has(sha.toLowerCase()) ? 1 : 0));
      case "FLUSH":
        if (words.length > 1 || (words.length === 1 && !/^a?sync$/i.test(words[0]!))) {
          throw new ReplyError("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
        }
        this.flush();
        return ok;
      default:
        throw new ReplyError(`ERR unknown subcommand '${subcommand}'. Try SCRIPT HELP.`);
    }
  }

  #load(sha: string, body: string): Script {
    const script = this.#compile(body);
    this.#scripts.set(sha, script);
    return script;
  }

  #compile(body: string): Script {
    const { flags, source } = this.#readShebang(body);
    return {
      chunk: this.#machine().compile(source),
      readOnly: flags.includes("no-writes"),
      declaredKeysOnly: flags.includes("allow-key-locking"),
    };
  }

  /** Parses `#!lua name=… flags=a,b` and empties that first line, so that the other lines keep their numbers. */
  #readShebang(body: string): { flags: readonly string[]; source: string } {
    if (!body.startsWith("#!")) return { flags: [], source: body };
    const end = body.indexOf("\n");
    if (end < 0) throw new ReplyError("ERR Invalid script shebang");
    const [engine, ...options] = body.slice(0, end).split(/[ \t\r]+/);
    if (engine !== "#!lua") throw new ReplyError(`ERR Unexpected engine in script shebang: ${engine}`);
    const upstash = this.#dialect === "upstash";
    const known = upstash ? [...redisFlags, "allow-key-locking"] : redisFlags;
    const flags: string[] = [];
    for (const option of options.filter((word) => word !== "")) {
      if (option.startsWith("flags=")) {
        const list = option.slice("flags=".length);
        if (list !== "") flags.push(...list.split(","));
      } else if (!upstash || !option.startsWith("name=")) {
        throw new ReplyError(`ERR Unknown lua shebang option: ${option}`);
      }
    }
    const unknown = flags.find((flag) => !known.includes(flag));
    if (unknown !== undefined) throw new ReplyError(`ERR Unexpected flag in script shebang: ${unknown}`);
    return { flags, source: body.slice(end) };
  }

  #machine(): Lua {
    this.#lua ??= this.#makeLua();
    return this.#lua;
  }
}
