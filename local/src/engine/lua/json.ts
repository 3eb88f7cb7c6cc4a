import { fromOctets, toBytes, toOctets, toText } from "../commands/bytes.ts";
import { fengari, type LuaState, printNumber } from "./dialect.ts";

const { lua, lauxlib } = fengari;

// The limits of the cjson library in Redis: nesting, and the length from which a list may be too sparse.
const maxDepth = 1000;
const sparseFrom = 10;

/** cjson.encode: converts one value to JSON. */
export function encodeJson(state: LuaState): number {
  if (lua.lua_gettop(state) !== 1)
    lauxlib.luaL_error(state, toOctets("bad argument #1 to 'encode' (expected 1 argument)"));
  lua.lua_pushstring(state, toOctets(encode(state, 1)));
  return 1;
}

/** cjson.decode: parses JSON. null becomes cjson.null. */
export function decodeJson(state: LuaState): number {
  const text = toText(fromOctets(lauxlib.luaL_checkstring(state, 1)));
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    lauxlib.luaL_error(
      state,
      toOctets(toBytes(`invalid JSON: ${(error as Error).message}`.replaceAll("%", "%%"))),
    );
  }
  push(state, value);
  return 1;
}

/** Encodes the value on top of the stack without popping it. */
function encode(state: LuaState, depth: number): string {
  const type = lua.lua_type(state, -1);
  switch (type) {
    case lua.LUA_TSTRING:
      return quote(fromOctets(lua.lua_tostring(state, -1)!));
    case lua.LUA_TNUMBER: {
      const value = lua.lua_tonumber(state, -1);
      return Number.isFinite(value) ? printNumber(value) : refuse(state, "number", "must not be NaN or Inf");
    }
    case lua.LUA_TBOOLEAN:
      return String(lua.lua_toboolean(state, -1));
    case lua.LUA_TNIL:
      return "null";
    case lua.LUA_TLIGHTUSERDATA:
      if (lua.lua_touserdata(state, -1) === null) return "null";
      return refuse(state, "userdata", "type not supported");
    case lua.LUA_TTABLE:
      if (depth > maxDepth) {
        return lauxlib.luaL_error(state, toOctets(`Cannot serialise, excessive depth (${depth})`));
      }
      return encodeTable(state, depth);
    default:
      return refuse(state, fromOctets(lua.lua_typename(state, type)), "type not supported");
  }
}

function encodeTable(state: LuaState, depth: number): string {
  // A C function starts with 20 stack slots; nesting needs more.
  lua.lua_checkstack(state, 4);
  const entries: [key: string | number, json: string][] = [];
  lua.lua_pushnil(state);
  while (lua.lua_next(state, -2) !== 0) {
    const numeric = lua.lua_type(state, -2) === lua.LUA_TNUMBER;
    if (!numeric && lua.lua_type(state, -2) !== lua.LUA_TSTRING) {
      refuse(state, "table", "table key must be a number or string");
    }
    const key = numeric ? lua.lua_tonumber(state, -2) : fromOctets(lua.lua_tostring(state, -2)!);
    entries.push([key, encode(state, depth + 1)]);
    lua.lua_pop(state, 1);
  }
  const isList =
    entries.length > 0 && entries.every(([key]) => typeof key === "number" && key >= 1 && key % 1 === 0);
  if (!isList) {
    const members = entries.map(
      ([key, json]) => `${quote(typeof key === "number" ? printNumber(key) : key)}:${json}`,
    );
    return `{${members.join(",")}}`;
  }
  const last = entries.reduce((most, [key]) => Math.max(most, key as number), 0);
  if (last > sparseFrom && last > entries.length * 2) refuse(state, "table", "excessively sparse array");
  const items = new Array<string>(last).fill("null");
  for (const [key, json] of entries) items[(key as number) - 1] = json;
  return `[${items.join(",")}]`;
}

const shortEscapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "/": "\\/",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};

function quote(bytes: string): string {
  let quoted = "";
  for (const byte of bytes) {
    const code = byte.charCodeAt(0);
    // Bytes from 0x80 on are not escaped: they are part of UTF-8.
    const control = code < 0x20 || code === 0x7f;
    quoted += shortEscapes[byte] ?? (control ? `\\u${code.toString(16).padStart(4, "0")}` : byte);
  }
  return `"${quoted}"`;
}

function push(state: LuaState, value: unknown): void {
  lua.lua_checkstack(state, 4);
  if (typeof value === "string") {
    lua.lua_pushstring(state, toOctets(toBytes(value)));
  } else if (typeof value === "number") {
    lua.lua_pushnumber(state, value);
  } else if (typeof value === "boolean") {
    lua.lua_pushboolean(state, value);
  } else if (value === null) {
    lua.lua_pushlightuserdata(state, null);
  } else if (Array.isArray(value)) {
    lua.lua_createtable(state, value.length, 0);
    for (const [position, item] of value.entries()) {
      push(state, item);
      lua.lua_rawseti(state, -2, position + 1);
    }
  } else {
    lua.lua_createtable(state, 0, 0);
    for (const [key, item] of Object.entries(value as object)) {
      push(state, item);
      lua.lua_setfield(state, -2, toOctets(toBytes(key)));
    }
  }
}

function refuse(state: LuaState, type: string, why: string): never {
  return lauxlib.luaL_error(state, toOctets(`Cannot serialise ${type}: ${why}`));
}
