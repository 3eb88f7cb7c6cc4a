import { globMatcher } from "../commands/glob.ts";
import { parseInteger } from "../commands/numbers.ts";
import { type ByteReply, ok, ReplyError, syntaxError } from "../commands/reply.ts";
import type { Dialect } from "../dialect.ts";
import type { Lua, ScriptCall } from "./machine.ts";
import type { Registration } from "./redis-library.ts";

interface Library {
  readonly name: string;
  readonly code: string;
  readonly functions: readonly Registration[];
}

/** Executes a command that a function calls. */
type CallCommand = (words: readonly string[], readOnly: boolean) => ByteReply;

const knownFlags = ["no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];

/** The libraries of functions of an engine: FUNCTION, FCALL and FCALL_RO. */
export class Functions {
  readonly #dialect: Dialect;
  readonly #machine: () => Lua;
  readonly #command: CallCommand;
  readonly #libraries = new Map<string, Library>();

  constructor(dialect: Dialect, machine: () => Lua, command: CallCommand) {
    this.#dialect = dialect;
    this.#machine = machine;
    this.#command = command;
  }

  /** Deletes all libraries. */
  flush(): void {
    for (const library of this.#libraries.values()) this.#release(library.functions);
    this.#libraries.clear();
  }

  /** FUNCTION LOAD | DELETE | FLUSH | LIST | STATS. Its first word is the subcommand. */
  manage([subcommand, ...words]: readonly string[]): ByteReply {
    switch (subcommand!.toUpperCase()) {
      case "LOAD":
        return this.#load(words);
      case "DELETE":
        return this.#delete(words);
      case "FLUSH":
        if (words.length > 1 || (words.length === 1 && !/^a?sync$/i.test(words[0]!))) {
          throw new ReplyError("ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
        }
        this.flush();
        return ok;
      case "LIST":
        return this.#list(words);
      case "STATS":
        return this.#stats();
      default:
        throw new ReplyError(`ERR unknown subcommand '${subcommand}'. Try FUNCTION HELP.`);
    }
  }

  /** FCALL name numkeys key … argument …, and FCALL_RO, which refuses to write. */
  call([name, count, ...rest]: readonly string[], readOnly: boolean): ByteReply {
    const found = this.#find(name!);
    if (!found) throw new ReplyError("ERR Function not found");
    const keyCount = parseInteger(count!);
    if (keyCount === undefined) throw new ReplyError("ERR Bad number of keys provided");
    if (keyCount > rest.length)
      throw new ReplyError("ERR Number of keys can't be greater than number of args");
    if (keyCount < 0n) throw new ReplyError("ERR Number of keys can't be negative");
    const reads = found.flags.includes("no-writes");
    // Upstash lets every function run, and refuses its writes.
    if (readOnly && !reads && this.#dialect !== "upstash") {
      throw new ReplyError("ERR Can not execute a script with write flag using *_ro command.");
    }
    const call: ScriptCall = {
      name: name!,
      keys: rest.slice(0, Number(keyCount)),
      values: rest.slice(Number(keyCount)),
      passesArguments: true,
      command: (words) => this.#command(words, readOnly || reads),
    };
    return this.#machine().run(found, call);
  }

  #find(name: string): Registration | undefined {
    for (const { functions } of this.#libraries.values()) {
      const found = functions.find((registered) => registered.name === name);
      if (found) return found;
    }
    return undefined;
  }

  #load(words: readonly string[]): ByteReply {
    const replaces = words.length > 1 && words[0]!.toUpperCase() === "REPLACE";
    const [code, ...more] = replaces ? words.slice(1) : words;
    if (code === undefined) throw new ReplyError("ERR Function code is missing");
    if (more.length > 0) throw new ReplyError(`ERR Unknown option given: ${words[0]}`);
    const { name, source } = readShebang(code);
    const before = this.#libraries.get(name);
    if (before && !replaces) throw new ReplyError(`ERR Library '${name}' already exists`);
    const functions = this.#register(source);
    try {
      this.#check(functions, before);
    } catch (error) {
      this.#release(functions);
      throw error;
    }
    if (before) this.#release(before.functions);
    this.#libraries.set(name, { name, code, functions });
    return name;
  }

  /** Runs the code of a library, and returns what it has registered. */
  #register(source: string): Registration[] {
    const functions: Registration[] = [];
    const machine = this.#machine();
    const chunk = machine.compile(source, "user_function");
    try {
      machine.run(chunk, {
        name: "",
        keys: [],
        values: [],
        command: () => {
          throw new ReplyError("ERR redis.call/pcall can only be called inside a script invocation");
        },
        register: (registered) => functions.push(registered),
      });
      return functions;
    } catch (error) {
      this.#release(functions);
      if (!(error instanceof ReplyError)) throw error;
      const reason = error.message.replace(/ script: , on @user_function:\d+\.$/, "");
      throw new ReplyError(`ERR Error registering functions: ${reason}`);
    } finally {
      machine.release(chunk);
    }
  }

  #check(functions: readonly Registration[], replaced: Library | undefined): void {
    if (functions.length === 0) throw new ReplyError("ERR No functions registered");
    for (const [position, { name, flags }] of functions.entries()) {
      const other = this.#find(name);
      const isOwn = replaced?.functions.some((before) => before === other);
      if (functions.findIndex((each) => each.name === name) !== position) {
        throw new ReplyError("ERR Error registering functions: ERR Function already exists in the library");
      }
      if (other && !isOwn) throw new ReplyError(`ERR Function ${name} already exists`);
      const unknown = flags.some((flag) => !knownFlags.includes(flag));
      if (unknown) throw new ReplyError("ERR Error registering functions: ERR unknown flag given");
    }
  }

  #delete([name, ...more]: readonly string[]): ByteReply {
    if (name === undefined || more.length > 0) {
      throw new ReplyError("ERR wrong number of arguments for 'function|delete' command");
    }
    const library = this.#libraries.get(name);
    if (!library) throw new ReplyError("ERR Library not found");
    this.#release(library.functions);
    this.#libraries.delete(name);
    return ok;
  }

  /** FUNCTION LIST [LIBRARYNAME pattern] [WITHCODE] */
  #list(words: readonly string[]): ByteReply {
    let matches = (_name: string) => true;
    let withCode = false;
    for (let position = 0; position < words.length; position++) {
      const option = words[position]!.toUpperCase();
      if (option === "WITHCODE") withCode = true;
      else if (option !== "LIBRARYNAME") throw new ReplyError(`ERR Unknown argument ${words[position]}`);
      else if (words[position + 1] === undefined) throw syntaxError();
      else matches = globMatcher(words[++position]!);
    }
    return [...this.#libraries.values()]
      .filter(({ name }) => matches(name))
      .map(({ name, code, functions }) => [
        "library_name",
        name,
        "engine",
        "LUA",
        "functions",
        functions.map((each) => ["name", each.name, "description", each.description, "flags", each.flags]),
        ...(withCode ? ["library_code", code] : []),
      ]);
  }

  #stats(): ByteReply {
    const libraries = [...this.#libraries.values()];
    const functions = libraries.reduce((sum, library) => sum + library.functions.length, 0);
    const counts = ["libraries_count", libraries.length, "functions_count", functions];
    return ["running_script", null, "engines", ["LUA", counts]];
  }

  #release(functions: readonly Registration[]): void {
    for (const registered of functions) this.#machine().release(registered);
  }
}

/** Parses `#!lua name=…` and empties that first line, so that the other lines keep their numbers. */
function readShebang(code: string): { readonly name: string; readonly source: string } {
  if (!code.startsWith("#!")) throw new ReplyError("ERR Missing library metadata");
  const end = code.indexOf("\n");
  if (end < 0) throw new ReplyError("ERR Invalid library metadata");
  const [engine, ...options] = code.slice(2, end).trim().split(/\s+/);
  if (engine?.toLowerCase() !== "lua") throw new ReplyError(`ERR Engine '${engine}' not found`);
  const unknown = options.find((option) => !option.startsWith("name="));
  if (unknown !== undefined) throw new ReplyError(`ERR Invalid metadata value given: ${unknown}`);
  const [name, second] = options.map((option) => option.slice("name=".length));
  if (second !== undefined)
    throw new ReplyError("ERR Invalid metadata value, name argument was given multiple times");
  if (name === undefined) throw new ReplyError("ERR Library name was not given");
  if (!/^\w+$/.test(name)) {
    throw new ReplyError(
      "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long",
    );
  }
  return { name, source: code.slice(end) };
}
