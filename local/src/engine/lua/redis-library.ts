import { fromOctets } from "../commands/bytes.ts";
import { fengari, type LuaState } from "./dialect.ts";
import { sha1 } from "./sha1.ts";
import { name, pushBytes, pushField, readBytes, readField } from "./values.ts";

const { lua, lauxlib } = fengari;

/** redis.status_reply and redis.error_reply: a table with one field. */
export function singleField(state: LuaState, field: "err" | "ok"): number {
  if (lua.lua_gettop(state) !== 1 || lua.lua_type(state, 1) !== lua.LUA_TSTRING) {
    pushField(state, "err", "ERR wrong number or type of arguments");
    return 1;
  }
  const text = readBytes(state, 1);
  pushField(state, field, field === "err" ? withErrorCode(text) : text);
  return 1;
}

/** The message of an error reply. It gets the code `ERR` if it has only one word, and so no code of its own. */
function withErrorCode(text: string): string {
  const message = text.startsWith("-") ? text.slice(1) : text;
  return message.includes(" ") ? message : `ERR ${message}`;
}

/** redis.sha1hex */
export function sha1hex(state: LuaState): number {
  if (lua.lua_gettop(state) !== 1) {
    pushField(state, "err", "ERR wrong number of arguments");
    lua.lua_error(state);
  }
  const text = lua.lua_tostring(state, 1);
  pushBytes(state, sha1(text === null ? "" : fromOctets(text)));
  return 1;
}

/** loadstring, for text only: bytecode could break out of the machine. */
export function loadString(state: LuaState): number {
  const text = lauxlib.luaL_checkstring(state, 1);
  const chunk = lua.lua_gettop(state) > 1 ? lauxlib.luaL_checkstring(state, 2) : text;
  if (lauxlib.luaL_loadbufferx(state, text, text.length, chunk, name("t")) === lua.LUA_OK) return 1;
  lua.lua_pushnil(state);
  lua.lua_insert(state, -2);
  return 2;
}

/** A function that a library registers. */
export interface Registration {
  readonly name: string;
  readonly description: string | null;
  readonly flags: readonly string[];
  /** Of its callback in the registry of the machine. */
  readonly reference: number;
}

/**
 * Parses the arguments of redis.register_function: a name and a callback, or a table with `function_name`, `callback`,
 * `flags` and `description`. Returns the reason if they are wrong.
 */
export function readRegistration(state: LuaState): Registration | string {
  if (lua.lua_gettop(state) === 2) {
    if (lua.lua_type(state, 1) !== lua.LUA_TSTRING) {
      return "first argument to redis.register_function must be a string";
    }
    if (lua.lua_type(state, 2) !== lua.LUA_TFUNCTION) {
      return "second argument to redis.register_function must be a function";
    }
    const reference = lauxlib.luaL_ref(state, lua.LUA_REGISTRYINDEX);
    return { name: readBytes(state, 1), description: null, flags: [], reference };
  }
  if (lua.lua_gettop(state) !== 1) return "wrong number of arguments to redis.register_function";
  if (lua.lua_type(state, 1) !== lua.LUA_TTABLE) {
    return "calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments).";
  }
  const given = readField(state, "function_name");
  const description = readField(state, "description") ?? null;
  if (given === undefined) return "redis.register_function must get a function name argument";
  const flags = readFlags(state);
  if (lua.lua_getfield(state, 1, name("callback")) !== lua.LUA_TFUNCTION) {
    return "redis.register_function must get a callback argument";
  }
  const reference = lauxlib.luaL_ref(state, lua.LUA_REGISTRYINDEX);
  return { name: given, description, flags, reference };
}

function readFlags(state: LuaState): string[] {
  const flags: string[] = [];
  if (lua.lua_getfield(state, 1, name("flags")) === lua.LUA_TTABLE) {
    for (let position = 1; lua.lua_rawgeti(state, -1, position) === lua.LUA_TSTRING; position++) {
      flags.push(readBytes(state, -1));
      lua.lua_pop(state, 1);
    }
    lua.lua_pop(state, 1);
  }
  lua.lua_pop(state, 1);
  return flags;
}
