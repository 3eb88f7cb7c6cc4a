import type { Table } from "fengari/src/ltable.js";
import { fromOctets, toOctets } from "../commands/bytes.ts";
import { fengari, type LuaState, lua51Message, printNumber } from "./dialect.ts";
import { name } from "./values.ts";

const { lua, lauxlib } = fengari;

/** error(message, level). As in Lua 5.1, it also prepends the position to a number. */
export function raise(state: LuaState): number {
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

/** pcall as Redis defines it: an error table is returned as its `err` text. */
export function protectedCall(state: LuaState): number {
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

/** Raises the error for reading a global that does not exist. */
export function missingGlobal(state: LuaState): number {
  const key = fromOctets(lauxlib.luaL_tolstring(state, 2));
  return lauxlib.luaL_error(
    state,
    toOctets("Script attempted to access nonexistent global variable '%s'"),
    toOctets(key),
  );
}

/** tostring, with numbers as Lua 5.1 prints them. */
export function toStringFunction(state: LuaState): number {
  lauxlib.luaL_checkany(state, 1);
  if (lua.lua_type(state, 1) === lua.LUA_TNUMBER) {
    lua.lua_pushstring(state, toOctets(printNumber(lua.lua_tonumber(state, 1))));
  } else {
    lauxlib.luaL_tolstring(state, 1);
  }
  return 1;
}

/** Raises an error if the first argument is a read-only table. */
export function refuseReadOnly(state: LuaState): void {
  if (lua.lua_type(state, 1) === lua.LUA_TTABLE && (lua.lua_topointer(state, 1) as Table).readOnly) {
    lauxlib.luaL_error(state, toOctets("Attempt to modify a readonly table"));
  }
}

/** math.max of numbers, and of strings that parse as numbers. */
export function greatest(state: LuaState): number {
  return extremum(state, (left, right) => (right > left ? right : left));
}

/** math.min of numbers, and of strings that parse as numbers. */
export function least(state: LuaState): number {
  return extremum(state, (left, right) => (right < left ? right : left));
}

// Compares as C does: a NaN that comes later changes nothing, where Math.max would return it.
function extremum(state: LuaState, choose: (left: number, right: number) => number): number {
  let found = lauxlib.luaL_checknumber(state, 1);
  for (let index = 2; index <= lua.lua_gettop(state); index++) {
    found = choose(found, lauxlib.luaL_checknumber(state, index));
  }
  lua.lua_pushnumber(state, found);
  return 1;
}
