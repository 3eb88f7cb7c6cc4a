// The part of fengari that the engine uses; the package has no declarations of its own.

declare module "fengari" {
  /** A Lua thread. Opaque. */
  export interface LuaState {
    readonly stack: unknown[];
    /** 0 while a hook runs, which then does not interrupt itself. */
    allowhook: number;
  }
  /** A function of JavaScript that Lua can call; returns how many results it left on the stack. */
  export type LuaFunction = (state: LuaState) => number;

  interface LuaDebug {
    source: Uint8Array | null;
    what: Uint8Array | null;
    currentline: number;
  }

  interface LuaApi {
    readonly LUA_MASKCOUNT: number;
    readonly LUA_MULTRET: number;
    readonly LUA_OK: number;
    readonly LUA_REGISTRYINDEX: number;
    readonly LUA_RIDX_GLOBALS: number;
    readonly LUA_TBOOLEAN: number;
    readonly LUA_TFUNCTION: number;
    readonly LUA_TLIGHTUSERDATA: number;
    readonly LUA_TNIL: number;
    readonly LUA_TNUMBER: number;
    readonly LUA_TSTRING: number;
    readonly LUA_TTABLE: number;
    readonly lua_Debug: new () => LuaDebug;
    lua_atnativeerror(state: LuaState, handler: LuaFunction): void;
    lua_call(state: LuaState, args: number, results: number): void;
    lua_checkstack(state: LuaState, slots: number): boolean;
    lua_createtable(state: LuaState, items: number, fields: number): void;
    lua_error(state: LuaState): never;
    lua_getfield(state: LuaState, index: number, key: Uint8Array): number;
    lua_getinfo(state: LuaState, what: Uint8Array, debug: LuaDebug): number;
    lua_getstack(state: LuaState, level: number, debug: LuaDebug): number;
    lua_gettop(state: LuaState): number;
    lua_insert(state: LuaState, index: number): void;
    lua_next(state: LuaState, index: number): number;
    lua_pcall(state: LuaState, args: number, results: number, handler: number): number;
    lua_pop(state: LuaState, count: number): void;
    lua_pushboolean(state: LuaState, value: boolean): void;
    lua_pushcfunction(state: LuaState, value: LuaFunction): void;
    lua_pushlightuserdata(state: LuaState, value: unknown): void;
    lua_pushnil(state: LuaState): void;
    lua_pushnumber(state: LuaState, value: number): void;
    lua_pushstring(state: LuaState, value: Uint8Array): void;
    lua_pushvalue(state: LuaState, index: number): void;
    lua_rawequal(state: LuaState, left: number, right: number): number;
    lua_rawget(state: LuaState, index: number): number;
    lua_rawgeti(state: LuaState, index: number, position: number): number;
    lua_rawset(state: LuaState, index: number): void;
    lua_rawseti(state: LuaState, index: number, position: number): void;
    lua_remove(state: LuaState, index: number): void;
    lua_replace(state: LuaState, index: number): void;
    lua_setfield(state: LuaState, index: number, key: Uint8Array): void;
    lua_sethook(state: LuaState, hook: (state: LuaState) => void, mask: number, count: number): void;
    lua_setmetatable(state: LuaState, index: number): void;
    lua_settop(state: LuaState, index: number): void;
    lua_tocfunction(state: LuaState, index: number): LuaFunction;
    lua_toboolean(state: LuaState, index: number): boolean;
    lua_tonumber(state: LuaState, index: number): number;
    lua_topointer(state: LuaState, index: number): unknown;
    lua_tostring(state: LuaState, index: number): Uint8Array | null;
    lua_touserdata(state: LuaState, index: number): unknown;
    lua_type(state: LuaState, index: number): number;
    lua_typename(state: LuaState, type: number): Uint8Array;
  }

  interface LuaAuxiliary {
    luaL_checkany(state: LuaState, argument: number): void;
    luaL_checknumber(state: LuaState, argument: number): number;
    luaL_checkstring(state: LuaState, argument: number): Uint8Array;
    luaL_error(state: LuaState, format: Uint8Array, ...values: unknown[]): never;
    luaL_loadbufferx(
      state: LuaState,
      source: Uint8Array,
      length: number,
      chunk: Uint8Array,
      mode: Uint8Array,
    ): number;
    luaL_newstate(): LuaState;
    luaL_ref(state: LuaState, table: number): number;
    luaL_requiref(state: LuaState, name: Uint8Array, open: LuaFunction, global: number): void;
    luaL_tolstring(state: LuaState, index: number): Uint8Array;
    luaL_unref(state: LuaState, table: number, reference: number): void;
    luaL_where(state: LuaState, level: number): void;
  }

  interface LuaLibraries {
    luaopen_base: LuaFunction;
    luaopen_coroutine: LuaFunction;
    luaopen_math: LuaFunction;
    luaopen_string: LuaFunction;
    luaopen_table: LuaFunction;
  }

  const fengari: {
    readonly lua: LuaApi;
    readonly lauxlib: LuaAuxiliary;
    readonly lualib: LuaLibraries;
  };
  export default fengari;
}

declare module "fengari/src/lobject.js" {
  import type { LuaState } from "fengari";

  export class TValue {
    readonly type: number;
    readonly value: unknown;
    ttisinteger(): boolean;
    ttisfloat(): boolean;
    ttisnumber(): boolean;
    setfltvalue(value: number): void;
    setivalue(value: number): void;
    setsvalue(value: unknown): void;
  }

  const lobject: {
    readonly TValue: { readonly prototype: TValue };
    luaO_pushfstring(state: LuaState, format: Uint8Array, ...values: unknown[]): Uint8Array;
    luaO_pushvfstring(state: LuaState, format: Uint8Array, values: readonly unknown[]): Uint8Array;
    luaO_str2num(octets: Uint8Array, result: TValue): number;
    luaO_tostring(state: LuaState, value: TValue): void;
  };
  export default lobject;
}

declare module "fengari/src/lvm.js" {
  import type { TValue } from "fengari/src/lobject.js";

  const lvm: {
    tointeger(value: TValue): number | false;
    tonumber(value: TValue): number | false;
  };
  export default lvm;
}

declare module "fengari/src/ltable.js" {
  import type { LuaState } from "fengari";
  import type { TValue } from "fengari/src/lobject.js";

  export interface Table {
    readOnly?: boolean;
  }

  const ltable: {
    luaH_setfrom(state: LuaState, table: Table, key: TValue, value: TValue): void;
  };
  export default ltable;
}

declare module "fengari/src/llimits.js" {
  const llimits: { luai_nummod(state: unknown, dividend: number, divisor: number): number };
  export default llimits;
}

declare module "fengari/src/ldebug.js" {
  import type { LuaState } from "fengari";

  const ldebug: { luaG_runerror(state: LuaState, message: Uint8Array): never };
  export default ldebug;
}

declare module "fengari/src/lstring.js" {
  import type { LuaState } from "fengari";

  export interface TString {
    readonly realstring: Uint8Array;
    digits?: string;
  }

  const lstring: {
    readonly TString: { readonly prototype: TString };
    luaS_bless(state: LuaState, octets: Uint8Array): unknown;
  };
  export default lstring;
}
