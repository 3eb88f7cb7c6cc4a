import fengari, { type LuaFunction, type LuaState } from "fengari";
import type { Table } from "fengari/src/ltable.js";
import { fromOctets, toOctets } from "./bytes.ts";
import { applyLua51, lua51Message, newerSyntax, printArgument, printNumber } from "./lua-dialect.ts";
import { stringFormat } from "./lua-format.ts";
import { decodeJson, encodeJson } from "./lua-json.ts";
import { prelude } from "./lua-prelude.ts";
import { LuaRandom } from "./lua-random.ts";
import { type ByteReply, ReplyError, Status } from "./reply.ts";
import { sha1 } from "./sha1.ts";

const { lua, lauxlib, lualib } = fengari;

/** A compiled script. Valid for the {@link Lua} that compiled it. */
export interface Chunk {
  readonly reference: number;
}

/** What a script can reach while it runs. */
export interface ScriptCall {
  readonly sha: string;
  readonly keys: readonly string[];
  readonly values: readonly string[];
  /** Executes one command for redis.call or redis.pcall. @throws ReplyError */
  readonly command: (words: readonly string[]) => ByteReply;
}

const octets = /* @__PURE__ */ new Map<string, Uint8Array>();

/** Names are converted once: the machine wants arrays of bytes, and hands the same names out all the time. */
function name(text: string): Uint8Array {
  let found = octets.get(text);
  if (!found) {
    found = toOctets(text);
    octets.set(text, found);
  }
  return found;
}

/**
 * A Lua 5.1 as scripts in Redis 7 see it: KEYS, ARGV, `redis`, `cjson`, the safe part of the standard library,
 * globals that cannot be made or changed. One machine runs all scripts of an engine, one after another.
 */
export class Lua {
  readonly #state: LuaState;
  readonly #globals: number;
  readonly #random = new LuaRandom();
  #running: ScriptCall | undefined;
  #failure: unknown;

  constructor() {
    applyLua51();
    const state = lauxlib.luaL_newstate();
    this.#state = state;
    // An exception of JavaScript inside the machine (its own stack overflowing, say) becomes an error of Lua.
    lua.lua_atnativeerror(state, () => {
      this.#pushBytes(String(lua.lua_touserdata(state, 1)));
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
   * Compiles a script, without running it.
   *
   * @throws ReplyError `ERR Error compiling script …`
   */
  compile(source: string): Chunk {
    const newer = newerSyntax(source);
    if (newer) {
      throw compileError(`user_script:${newer.line}: unexpected symbol near '${newer.operator}'`);
    }
    const status = this.#load(source, "@user_script");
    if (status !== lua.LUA_OK) {
      const message = this.#bytes(-1);
      lua.lua_settop(this.#state, 0);
      throw compileError(message);
    }
    return { reference: lauxlib.luaL_ref(this.#state, lua.LUA_REGISTRYINDEX) };
  }

  /** Forgets a compiled script. */
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
      lua.lua_rawgeti(state, lua.LUA_REGISTRYINDEX, this.#globals);
      this.#setGlobalList("KEYS", call.keys);
      this.#setGlobalList("ARGV", call.values);
      lua.lua_settop(state, 0);

      lua.lua_pushcfunction(state, this.#describeError);
      lua.lua_rawgeti(state, lua.LUA_REGISTRYINDEX, chunk.reference);
      const status = lua.lua_pcall(state, 0, 1, 1);
      if (this.#failure !== undefined) throw this.#failure;
      if (status !== lua.LUA_OK) throw new ReplyError(this.#errorText(call.sha));
      const reply = this.#toReply(-1);
      if (reply instanceof ReplyError) throw reply;
      return reply;
    } finally {
      lua.lua_settop(state, 0);
      this.#running = undefined;
      this.#failure = undefined;
    }
  }

  /** Message handler: notes where an error happened, and words it as Redis does. */
  readonly #describeError: LuaFunction = (state) => {
    const debug = new lua.lua_Debug();
    let known = lua.lua_getstack(state, 1, debug) === 1;
    if (known) {
      lua.lua_getinfo(state, name("nSl"), debug);
      // "J": a function of this file, called by the script.
      if (debug.what !== null && fromOctets(debug.what) === "J" && lua.lua_getstack(state, 2, debug) === 1) {
        lua.lua_getinfo(state, name("nSl"), debug);
      }
      known = debug.source !== null;
    }
    if (lua.lua_type(state, 1) !== lua.LUA_TTABLE) {
      const message = lua51Message(fromOctets(lauxlib.luaL_tolstring(state, 1)));
      lua.lua_settop(state, 0);
      this.#pushField("err", `ERR ${message}`);
    }
    if (known) {
      this.#pushBytes(fromOctets(debug.source!).replace("=[JS]", "=[C]"));
      lua.lua_setfield(state, 1, name("source"));
      lua.lua_pushnumber(state, debug.currentline);
      lua.lua_setfield(state, 1, name("line"));
    }
    return 1;
  };

  /** What Redis answers when a script failed; the error is on top of the stack. */
  #errorText(sha: string): string {
    const state = this.#state;
    // Out of memory or stack, the message handler has not run.
    if (lua.lua_type(state, -1) !== lua.LUA_TTABLE) {
      return `ERR Error running script ${sha}, ${fromOctets(lauxlib.luaL_tolstring(state, -1))}`;
    }
    const [message, source, line] = ["err", "source", "line"].map((field) => {
      lua.lua_getfield(state, -1, name(field));
      const text = lua.lua_type(state, -1) === lua.LUA_TNIL ? undefined : this.#bytes(-1);
      lua.lua_pop(state, 1);
      return text;
    });
    const where = source !== undefined && line !== undefined ? ` script: ${sha}, on ${source}:${line}.` : "";
    return `${message ?? "ERR unknown error"}${where}`;
  }

  #addFunctions(): void {
    const state = this.#state;
    lua.lua_rawgeti(state, lua.LUA_REGISTRYINDEX, lua.LUA_RIDX_GLOBALS);
    this.#setFunctions({
      error: raise,
      missing_global: missingGlobal,
      loadstring: (own) => this.#loadString(own),
      pcall: protectedCall,
      tostring: toStringFunction,
    });
    lua.lua_getfield(state, 1, name("string"));
    this.#setFunctions({ format: stringFormat });
    lua.lua_settop(state, 1);
    lua.lua_getfield(state, 1, name("math"));
    this.#setFunctions({
      random: (own) => this.#random.next(own),
      randomseed: (own) => {
        this.#random.seed(lauxlib.luaL_checknumber(own, 1));
        return 0;
      },
    });
    lua.lua_settop(state, 1);

    lua.lua_createtable(state, 0, 16);
    this.#setFunctions({
      call: (own) => this.#call(own, true),
      pcall: (own) => this.#call(own, false),
      error_reply: (own) => this.#singleField(own, "err"),
      status_reply: (own) => this.#singleField(own, "ok"),
      sha1hex: (own) => this.#sha1hex(own),
      log: () => 0,
    });
    for (const [level, text] of ["LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"].entries()) {
      lua.lua_pushnumber(state, level);
      lua.lua_setfield(state, -2, name(text));
    }
    lua.lua_setfield(state, 1, name("redis"));

    lua.lua_createtable(state, 0, 3);
    this.#setFunctions({ decode: decodeJson, encode: encodeJson });
    lua.lua_pushlightuserdata(state, null);
    lua.lua_setfield(state, -2, name("null"));
    lua.lua_setfield(state, 1, name("cjson"));
    lua.lua_settop(state, 0);
  }

  /** Brings the libraries to 5.1 and makes them unchangeable. Returns a reference to the globals. */
  #lockGlobals(): number {
    const state = this.#state;
    const status = this.#load(prelude, "=prelude");
    if (status !== lua.LUA_OK || lua.lua_pcall(state, 0, lua.LUA_MULTRET, 0) !== lua.LUA_OK) {
      throw new Error(`the Lua prelude failed: ${this.#bytes(-1)}`);
    }
    for (let index = lua.lua_gettop(state); index > 0; index--) {
      (lua.lua_topointer(state, index) as Table).readOnly = true;
    }
    lua.lua_settop(state, 1);
    return lauxlib.luaL_ref(state, lua.LUA_REGISTRYINDEX);
  }

  #setFunctions(functions: Readonly<Record<string, LuaFunction>>): void {
    for (const [key, value] of Object.entries(functions)) {
      lua.lua_pushcfunction(this.#state, value);
      lua.lua_setfield(this.#state, -2, name(key));
    }
  }

  /** Sets a global of the table on top of the stack, which scripts themselves cannot change. */
  #setGlobalList(key: string, items: readonly string[]): void {
    const state = this.#state;
    const globals = lua.lua_topointer(state, 1) as Table;
    globals.readOnly = false;
    lua.lua_pushstring(state, name(key));
    lua.lua_createtable(state, items.length, 0);
    for (const [position, item] of items.entries()) {
      this.#pushBytes(item);
      lua.lua_rawseti(state, -2, position + 1);
    }
    lua.lua_rawset(state, 1);
    globals.readOnly = true;
  }

  #load(source: string, chunk: string): number {
    const text = toOctets(source);
    // Text only: bytecode could break out of the machine.
    return lauxlib.luaL_loadbufferx(this.#state, text, text.length, name(chunk), name("t"));
  }

  #loadString(state: LuaState): number {
    const text = lauxlib.luaL_checkstring(state, 1);
    const chunk = lua.lua_gettop(state) > 1 ? lauxlib.luaL_checkstring(state, 2) : text;
    if (lauxlib.luaL_loadbufferx(state, text, text.length, chunk, name("t")) === lua.LUA_OK) return 1;
    lua.lua_pushnil(state);
    lua.lua_insert(state, -2);
    return 2;
  }

  /** redis.call (`raises`) and redis.pcall. */
  #call(state: LuaState, raises: boolean): number {
    const reply = this.#execute(state);
    this.#push(state, reply);
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
      // Anything else is a defect of the engine: it must not pass for an answer of Redis.
      this.#failure = error;
      return new ReplyError("ERR the engine failed");
    }
  }

  #singleField(state: LuaState, field: "err" | "ok"): number {
    if (lua.lua_gettop(state) !== 1 || lua.lua_type(state, 1) !== lua.LUA_TSTRING) {
      this.#pushField("err", "ERR wrong number or type of arguments");
      return 1;
    }
    const text = this.#bytes(1);
    this.#pushField(field, field === "err" ? withErrorCode(text) : text);
    return 1;
  }

  #sha1hex(state: LuaState): number {
    if (lua.lua_gettop(state) !== 1) {
      this.#pushField("err", "ERR wrong number of arguments");
      lua.lua_error(state);
    }
    const text = lua.lua_tostring(state, 1);
    this.#pushBytes(sha1(text === null ? "" : fromOctets(text)));
    return 1;
  }

  /** Pushes a reply of Redis as the value that scripts get for it. */
  #push(state: LuaState, reply: ByteReply): void {
    if (typeof reply === "string") {
      lua.lua_pushstring(state, toOctets(reply));
    } else if (typeof reply === "number") {
      lua.lua_pushnumber(state, reply);
    } else if (reply === null) {
      lua.lua_pushboolean(state, false);
    } else if (reply instanceof Status) {
      this.#pushField("ok", reply.text);
    } else if (reply instanceof ReplyError) {
      this.#pushField("err", reply.message);
    } else {
      lua.lua_checkstack(state, 4);
      lua.lua_createtable(state, reply.length, 0);
      for (const [position, item] of reply.entries()) {
        this.#push(state, item);
        lua.lua_rawseti(state, -2, position + 1);
      }
    }
  }

  /** Converts what a script returned: numbers are cut to integers, a list ends at its first nil. */
  #toReply(index: number): ByteReply {
    const state = this.#state;
    switch (lua.lua_type(state, index)) {
      case lua.LUA_TSTRING:
        return this.#bytes(index);
      case lua.LUA_TNUMBER:
        return toInteger(lua.lua_tonumber(state, index));
      case lua.LUA_TBOOLEAN:
        return lua.lua_toboolean(state, index) ? 1 : null;
      case lua.LUA_TTABLE:
        return this.#tableReply();
      default:
        return null;
    }
  }

  /** Converts the table on top of the stack. */
  #tableReply(): ByteReply {
    const error = this.#field("err");
    if (error !== undefined) return new ReplyError(error.replace(/[\r\n]/g, " "));
    const status = this.#field("ok");
    if (status !== undefined) return new Status(status.replace(/[\r\n]/g, " "));
    const state = this.#state;
    lua.lua_checkstack(state, 4);
    const items: ByteReply[] = [];
    for (let position = 1; ; position++) {
      const type = lua.lua_rawgeti(state, -1, position);
      if (type !== lua.LUA_TNIL) items.push(this.#toReply(-1));
      lua.lua_pop(state, 1);
      if (type === lua.LUA_TNIL) return items;
    }
  }

  /** A field of the table on top of the stack, if it is a string. */
  #field(key: string): string | undefined {
    lua.lua_getfield(this.#state, -1, name(key));
    const text = lua.lua_type(this.#state, -1) === lua.LUA_TSTRING ? this.#bytes(-1) : undefined;
    lua.lua_pop(this.#state, 1);
    return text;
  }

  #pushField(key: string, text: string): void {
    lua.lua_createtable(this.#state, 0, 1);
    this.#pushBytes(text);
    lua.lua_setfield(this.#state, -2, name(key));
  }

  #pushBytes(text: string): void {
    lua.lua_pushstring(this.#state, toOctets(text));
  }

  #bytes(index: number): string {
    return fromOctets(lua.lua_tostring(this.#state, index)!);
  }
}

/** error(message, level): adds the position, also to a number, as 5.1 does. */
function raise(state: LuaState): number {
  const level = lua.lua_type(state, 2) === lua.LUA_TNUMBER ? lua.lua_tonumber(state, 2) : 1;
  lua.lua_settop(state, 1);
  const type = lua.lua_type(state, 1);
  if ((type === lua.LUA_TSTRING || type === lua.LUA_TNUMBER) && level > 0) {
    const message = fromOctets(lua.lua_tostring(state, 1)!);
    lauxlib.luaL_where(state, level);
    const where = fromOctets(lua.lua_tostring(state, -1)!);
    lua.lua_pushstring(state, toOctets(where + message));
  }
  return lua.lua_error(state);
}

/** pcall, as Redis replaces it: an error table arrives as its text. */
function protectedCall(state: LuaState): number {
  lauxlib.luaL_checkany(state, 1);
  lua.lua_pushboolean(state, true);
  lua.lua_insert(state, 1);
  if (lua.lua_pcall(state, lua.lua_gettop(state) - 2, lua.LUA_MULTRET, 0) === lua.LUA_OK) {
    return lua.lua_gettop(state);
  }
  if (lua.lua_type(state, -1) === lua.LUA_TTABLE) {
    lua.lua_getfield(state, -1, name("err"));
    if (lua.lua_type(state, -1) === lua.LUA_TSTRING) lua.lua_remove(state, -2);
    else lua.lua_pop(state, 1);
  } else if (lua.lua_type(state, -1) === lua.LUA_TSTRING) {
    const message = lua51Message(fromOctets(lua.lua_tostring(state, -1)!));
    lua.lua_pop(state, 1);
    lua.lua_pushstring(state, toOctets(message));
  }
  lua.lua_pushboolean(state, false);
  lua.lua_insert(state, -2);
  return 2;
}

/** What reading a global that does not exist does. */
function missingGlobal(state: LuaState): number {
  const key = fromOctets(lauxlib.luaL_tolstring(state, 2));
  return lauxlib.luaL_error(
    state,
    toOctets("Script attempted to access nonexistent global variable '%s'"),
    toOctets(key),
  );
}

/** tostring: numbers as 5.1 prints them. */
function toStringFunction(state: LuaState): number {
  lauxlib.luaL_checkany(state, 1);
  if (lua.lua_type(state, 1) === lua.LUA_TNUMBER) {
    lua.lua_pushstring(state, toOctets(printNumber(lua.lua_tonumber(state, 1))));
  } else {
    lauxlib.luaL_tolstring(state, 1);
  }
  return 1;
}

/** As C casts a double to 64 bits on x86: what does not fit becomes the least integer. */
function toInteger(value: number): number {
  const whole = Math.trunc(value);
  // `+ 0` turns -0 into 0.
  return Math.abs(whole) < 2 ** 63 ? whole + 0 : -(2 ** 63);
}

/** An error reply begins with a code: its first word, unless it has only one. */
function withErrorCode(text: string): string {
  const message = text.startsWith("-") ? text.slice(1) : text;
  return message.includes(" ") ? message : `ERR ${message}`;
}

function compileError(message: string): ReplyError {
  return new ReplyError(`ERR Error compiling script (new function): ${message}`);
}
