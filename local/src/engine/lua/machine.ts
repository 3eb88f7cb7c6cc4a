import type { Table } from "fengari/src/ltable.js";
import { fromOctets } from "../commands/bytes.ts";
import { type ByteReply, ReplyError } from "../commands/reply.ts";
import {
  greatest,
  least,
  missingGlobal,
  protectedCall,
  raise,
  refuseReadOnly,
  toStringFunction,
} from "./base.ts";
import {
  applyLua51,
  fengari,
  type LuaFunction,
  type LuaState,
  lua51Message,
  newerSyntax,
  printArgument,
} from "./dialect.ts";
import { stringFormat } from "./format.ts";
import { decodeJson, encodeJson } from "./json.ts";
import { load } from "./load.ts";
import { prelude } from "./prelude.ts";
import { LuaRandom } from "./random.ts";
import { loadString, type Registration, readRegistration, sha1hex, singleField } from "./redis-library.ts";
import { name, pushBytes, pushField, pushReply, readBytes, readField, readReply } from "./values.ts";

const { lua, lauxlib, lualib } = fengari;

/** Number of instructions between two checks of the time limit. Most scripts end before the first. */
const checkEvery = 10_000;

/** A compiled script. Only valid for the {@link Lua} that compiled it. */
export interface Chunk {
  readonly reference: number;
}

/** The context of one run of a script, of a function, or of the code of a library of functions. */
export interface ScriptCall {
  /** The SHA-1 of a script, or the name of a function. */
  readonly name: string;
  readonly keys: readonly string[];
  readonly values: readonly string[];
  /** Whether keys and values are arguments of the chunk, as for a function; otherwise they are KEYS and ARGV. */
  readonly passesArguments?: boolean;
  /** Takes what the code of a library registers. */
  readonly register?: (registered: Registration) => void;
  /** Executes one command for redis.call or redis.pcall. Throws a `ReplyError` when it fails. */
  readonly command: (words: readonly string[]) => ByteReply;
}

/**
 * Lua 5.1 with the environment of scripts in Redis 7: KEYS, ARGV, `redis`, `cjson`, the safe part of the standard
 * library, and globals that cannot be created or changed. One machine runs all scripts of an engine, one at a time.
 */
export class Lua {
  readonly #state: LuaState;
  readonly #timeLimit: number;
  readonly #clock: () => number;
  #deadline = 0;
  readonly #globals: number;
  readonly #random = new LuaRandom();
  #running: ScriptCall | undefined;
  #failure: unknown;

  /**
   * @param timeLimit how long a script may run, in ms
   * @param clock in ms; must advance while a script runs
   */
  constructor(timeLimit: number, clock: () => number) {
    applyLua51();
    const state = lauxlib.luaL_newstate();
    this.#state = state;
    this.#timeLimit = timeLimit;
    this.#clock = clock;
    lua.lua_atnativeerror(state, () => {
      const error = lua.lua_touserdata(state, 1);
      // A RangeError is the script's fault: a string too long, or a stack too deep. Any other error is a defect of the
      // engine and must not look like an error of Redis.
      if (!(error instanceof RangeError)) this.#failure = error;
      pushBytes(state, String(error));
      return 1;
    });
    for (const [library, open] of [
      ["_G", lualib.luaopen_base],
      ["coroutine", lualib.luaopen_coroutine],
      ["table", lualib.luaopen_table],
      ["string", lualib.luaopen_string],
      ["math", lualib.luaopen_math],
    ] as const) {
      lauxlib.luaL_requiref(state, name(library), open, 1);
      lua.lua_settop(state, 0);
    }
    this.#addFunctions();
    this.#globals = this.#lockGlobals();
  }

  /**
   * Compiles a script or the code of a library, without running it.
   *
   * @throws ReplyError `ERR Error compiling …`
   */
  compile(source: string, kind: "user_script" | "user_function" = "user_script"): Chunk {
    const newer = newerSyntax(source);
    if (newer) {
      throw compileError(kind, `${kind}:${newer.line}: unexpected symbol near '${newer.operator}'`);
    }
    const status = load(this.#state, source, `@${kind}`);
    if (status !== lua.LUA_OK) {
      const message = readBytes(this.#state, -1);
      lua.lua_settop(this.#state, 0);
      throw compileError(kind, message);
    }
    return { reference: lauxlib.luaL_ref(this.#state, lua.LUA_REGISTRYINDEX) };
  }

  /** Frees a compiled script. */
  release(chunk: Chunk): void {
    lauxlib.luaL_unref(this.#state, lua.LUA_REGISTRYINDEX, chunk.reference);
  }

  /**
   * Runs a compiled script.
   *
   * @throws ReplyError when the script fails or returns an error
   */
  run(chunk: Chunk, call: ScriptCall): ByteReply {
    const state = this.#state;
    this.#running = call;
    try {
      const isScript = !call.passesArguments;
      lua.lua_rawgeti(state, lua.LUA_REGISTRYINDEX, this.#globals);
      this.#setGlobalList("KEYS", isScript ? call.keys : undefined);
      this.#setGlobalList("ARGV", isScript ? call.values : undefined);
      lua.lua_settop(state, 0);

      lua.lua_pushcfunction(state, this.#describeError);
      lua.lua_rawgeti(state, lua.LUA_REGISTRYINDEX, chunk.reference);
      this.#deadline = this.#clock() + this.#timeLimit;
      // Coroutines inherit the hook.
      lua.lua_sethook(state, this.#checkTime, lua.LUA_MASKCOUNT, checkEvery);
      const lists = isScript ? [] : [call.keys, call.values];
      for (const items of lists) this.#pushList(items);
      const status = lua.lua_pcall(state, lists.length, 1, 1);
      if (this.#failure !== undefined) throw this.#failure;
      if (status !== lua.LUA_OK) throw new ReplyError(this.#errorText(call.name));
      const reply = readReply(state);
      if (reply instanceof ReplyError) throw reply;
      return reply;
    } finally {
      lua.lua_settop(state, 0);
      this.#running = undefined;
      this.#failure = undefined;
    }
  }

  /** Count hook: ends a script that exceeds the time limit, as SCRIPT KILL does in Redis. */
  readonly #checkTime = (state: LuaState): void => {
    if (this.#clock() < this.#deadline) return;
    // From now on the hook runs before each instruction, so that a pcall that catches the error does not continue.
    // Hooks are allowed again because the handler of an xpcall is called from within this hook, where they are off.
    state.allowhook = 1;
    lua.lua_sethook(state, this.#checkTime, lua.LUA_MASKCOUNT, 1);
    pushField(state, "err", `ERR Script killed after lua-time-limit (${this.#timeLimit} ms).`);
    lua.lua_error(state);
  };

  /** Message handler: records where an error happened, and formats it as Redis does. */
  readonly #describeError: LuaFunction = (state) => {
    const debug = new lua.lua_Debug();
    let known = lua.lua_getstack(state, 1, debug) === 1;
    if (known) {
      lua.lua_getinfo(state, name("nSl"), debug);
      // "J" is a function of this file. The error's place is the line of the script that called it.
      if (debug.what !== null && fromOctets(debug.what) === "J" && lua.lua_getstack(state, 2, debug) === 1) {
        lua.lua_getinfo(state, name("nSl"), debug);
      }
      known = debug.source !== null;
    }
    if (lua.lua_type(state, 1) !== lua.LUA_TTABLE) {
      const message = lua51Message(fromOctets(lauxlib.luaL_tolstring(state, 1)));
      lua.lua_settop(state, 0);
      pushField(this.#state, "err", `ERR ${message}`);
    }
    if (known) {
      pushBytes(this.#state, fromOctets(debug.source!).replace("=[JS]", "=[C]"));
      lua.lua_setfield(state, 1, name("source"));
      lua.lua_pushnumber(state, debug.currentline);
      lua.lua_setfield(state, 1, name("line"));
    }
    return 1;
  };

  /** Redis's error for a failed script. The error value is on top of the stack. */
  #errorText(called: string): string {
    const state = this.#state;
    // The message handler has not run if memory or stack was exhausted.
    if (lua.lua_type(state, -1) !== lua.LUA_TTABLE) {
      return `ERR Error running script ${called}, ${fromOctets(lauxlib.luaL_tolstring(state, -1))}`;
    }
    const [message, source, line] = ["err", "source", "line"].map((field) => readField(state, field));
    // Upstash's refusals do not name the line.
    const hasPlace =
      source !== undefined && line !== undefined && !message?.includes("'allow-key-locking' flag");
    return `${message ?? "ERR unknown error"}${hasPlace ? ` script: ${called}, on ${source}:${line}.` : ""}`;
  }

  #addFunctions(): void {
    lua.lua_rawgeti(this.#state, lua.LUA_REGISTRYINDEX, lua.LUA_RIDX_GLOBALS);
    this.#replaceGlobals();
    this.#extendLibraries();
    this.#addRedisLibrary();
    this.#addJsonLibrary();
    lua.lua_settop(this.#state, 0);
  }

  // The following methods expect the table of globals at index 1, the top of the stack, and leave it there.

  #replaceGlobals(): void {
    const state = this.#state;
    lua.lua_getfield(state, 1, name("setmetatable"));
    const setMetatable = lua.lua_tocfunction(state, -1);
    lua.lua_settop(state, 1);
    this.#setFunctions({
      error: raise,
      missing_global: missingGlobal,
      loadstring: loadString,
      pcall: protectedCall,
      setmetatable: (own) => {
        refuseReadOnly(own);
        return setMetatable(own);
      },
      tostring: toStringFunction,
    });
  }

  #extendLibraries(): void {
    const state = this.#state;
    lua.lua_getfield(state, 1, name("string"));
    this.#setFunctions({ format: stringFormat });
    lua.lua_settop(state, 1);
    lua.lua_getfield(state, 1, name("math"));
    this.#setFunctions({
      max: greatest,
      min: least,
      random: (own) => this.#random.next(own),
      randomseed: (own) => {
        this.#random.seed(lauxlib.luaL_checknumber(own, 1));
        return 0;
      },
    });
    lua.lua_settop(state, 1);
  }

  #addRedisLibrary(): void {
    const state = this.#state;
    lua.lua_createtable(state, 0, 16);
    this.#setFunctions({
      call: (own) => this.#call(own, true),
      pcall: (own) => this.#call(own, false),
      error_reply: (own) => singleField(own, "err"),
      status_reply: (own) => singleField(own, "ok"),
      sha1hex,
      register_function: (own) => this.#register(own),
      log: () => 0,
    });
    for (const [level, text] of ["LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"].entries()) {
      lua.lua_pushnumber(state, level);
      lua.lua_setfield(state, -2, name(text));
    }
    lua.lua_setfield(state, 1, name("redis"));
  }

  #addJsonLibrary(): void {
    const state = this.#state;
    lua.lua_createtable(state, 0, 3);
    this.#setFunctions({ decode: decodeJson, encode: encodeJson });
    lua.lua_pushlightuserdata(state, null);
    lua.lua_setfield(state, -2, name("null"));
    lua.lua_setfield(state, 1, name("cjson"));
  }

  /** Turns the libraries into those of 5.1 and makes them read-only. Returns a reference to the globals. */
  #lockGlobals(): number {
    const state = this.#state;
    const status = load(state, prelude, "=prelude");
    if (status !== lua.LUA_OK || lua.lua_pcall(state, 0, lua.LUA_MULTRET, 0) !== lua.LUA_OK) {
      throw new Error(`the Lua prelude failed: ${readBytes(this.#state, -1)}`);
    }
    for (let index = lua.lua_gettop(state); index > 0; index--) {
      (lua.lua_topointer(state, index) as Table).readOnly = true;
    }
    lua.lua_settop(state, 1);
    return lauxlib.luaL_ref(state, lua.LUA_REGISTRYINDEX);
  }

  /** Sets functions as fields of the table on top of the stack. */
  #setFunctions(functions: Readonly<Record<string, LuaFunction>>): void {
    for (const [key, value] of Object.entries(functions)) {
      lua.lua_pushcfunction(this.#state, value);
      lua.lua_setfield(this.#state, -2, name(key));
    }
  }

  /** Sets or removes a global list. The table of globals, read-only for scripts, is at index 1 of the stack. */
  #setGlobalList(key: string, items: readonly string[] | undefined): void {
    const state = this.#state;
    const globals = lua.lua_topointer(state, 1) as Table;
    globals.readOnly = false;
    lua.lua_pushstring(state, name(key));
    if (items) this.#pushList(items);
    else lua.lua_pushnil(state);
    lua.lua_rawset(state, 1);
    globals.readOnly = true;
  }

  #pushList(items: readonly string[]): void {
    lua.lua_createtable(this.#state, items.length, 0);
    for (const [position, item] of items.entries()) {
      pushBytes(this.#state, item);
      lua.lua_rawseti(this.#state, -2, position + 1);
    }
  }

  /** redis.call (`raises` is true) and redis.pcall. */
  #call(state: LuaState, raises: boolean): number {
    const reply = this.#execute(state);
    pushReply(state, reply);
    if (reply instanceof ReplyError && raises) lua.lua_error(state);
    return 1;
  }

  #execute(state: LuaState): ByteReply {
    const count = lua.lua_gettop(state);
    if (count === 0)
      return new ReplyError("ERR Please specify at least one argument for this redis lib call");
    const words: string[] = [];
    for (let index = 1; index <= count; index++) {
      const type = lua.lua_type(state, index);
      if (type === lua.LUA_TSTRING) {
        words.push(fromOctets(lua.lua_tostring(state, index)!));
      } else if (type === lua.LUA_TNUMBER) {
        words.push(printArgument(lua.lua_tonumber(state, index)));
      } else {
        return new ReplyError("ERR Lua redis lib command arguments must be strings or integers");
      }
    }
    try {
      return this.#running!.command(words);
    } catch (error) {
      if (error instanceof ReplyError) return error;
      this.#failure = error;
      return new ReplyError("ERR the engine failed");
    }
  }

  #register(state: LuaState): number {
    const register = this.#running?.register;
    const registered = register
      ? readRegistration(state)
      : "redis.register_function can only be called on FUNCTION LOAD command";
    if (typeof registered === "string") {
      pushField(state, "err", `ERR ${registered}`);
      return lua.lua_error(state);
    }
    register?.(registered);
    return 0;
  }
}

function compileError(kind: "user_script" | "user_function", message: string): ReplyError {
  const what = kind === "user_script" ? "script (new function)" : "function";
  // Lua 5.1 quotes it.
  const quoted = message.replace(/ near <eof>$/, " near '<eof>'");
  return new ReplyError(`ERR Error compiling ${what}: ${quoted}`);
}
