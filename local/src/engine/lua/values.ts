import { fromOctets, toOctets } from "../commands/bytes.ts";
import { type ByteReply, ReplyError, Status } from "../commands/reply.ts";
import { fengari, type LuaState } from "./dialect.ts";

const { lua } = fengari;

// Roughly the nesting that Lua's stack allows in Redis. Needed because a table may contain itself.
const maxDepth = 2000;

const names = /* @__PURE__ */ new Map<string, Uint8Array>();

/** A name as the bytes that the machine expects. Cached, because few names are used very often. */
export function name(text: string): Uint8Array {
  let octets = names.get(text);
  if (!octets) {
    octets = toOctets(text);
    names.set(text, octets);
  }
  return octets;
}

/** Pushes a byte string. */
export function pushBytes(state: LuaState, text: string): void {
  lua.lua_pushstring(state, toOctets(text));
}

/** Pushes a table with one field. */
export function pushField(state: LuaState, key: string, text: string): void {
  lua.lua_createtable(state, 0, 1);
  pushBytes(state, text);
  lua.lua_setfield(state, -2, name(key));
}

/** The byte string at an index, which must be a string or a number. */
export function readBytes(state: LuaState, index: number): string {
  return fromOctets(lua.lua_tostring(state, index)!);
}

/** A field of the table on top of the stack, without its metatable, if it is a string or a number. */
export function readField(state: LuaState, key: string): string | undefined {
  lua.lua_pushstring(state, name(key));
  lua.lua_rawget(state, -2);
  const type = lua.lua_type(state, -1);
  const text = type === lua.LUA_TSTRING || type === lua.LUA_TNUMBER ? readBytes(state, -1) : undefined;
  lua.lua_pop(state, 1);
  return text;
}

/** Pushes a reply of Redis, converted to a Lua value as redis.call does. */
export function pushReply(state: LuaState, reply: ByteReply): void {
  if (typeof reply === "string") {
    pushBytes(state, reply);
  } else if (typeof reply === "number") {
    lua.lua_pushnumber(state, reply);
  } else if (reply === null) {
    lua.lua_pushboolean(state, false);
  } else if (reply instanceof Status) {
    pushField(state, "ok", reply.text);
  } else if (reply instanceof ReplyError) {
    pushField(state, "err", reply.message);
  } else {
    lua.lua_checkstack(state, 4);
    lua.lua_createtable(state, reply.length, 0);
    for (const [position, item] of reply.entries()) {
      pushReply(state, item);
      lua.lua_rawseti(state, -2, position + 1);
    }
  }
}

/**
 * Converts the value on top of the stack as Redis converts the result of a script: numbers are truncated to integers,
 * true is 1, false is nil, and a list ends at its first nil.
 *
 * @throws ReplyError when it is nested too deeply
 */
export function readReply(state: LuaState, depth = 1): ByteReply {
  switch (lua.lua_type(state, -1)) {
    case lua.LUA_TSTRING:
      return readBytes(state, -1);
    case lua.LUA_TNUMBER:
      return toInteger(lua.lua_tonumber(state, -1));
    case lua.LUA_TBOOLEAN:
      return lua.lua_toboolean(state, -1) ? 1 : null;
    case lua.LUA_TTABLE:
      if (depth > maxDepth) throw new ReplyError("ERR reached lua stack limit");
      return readTable(state, depth);
    default:
      return null;
  }
}

function readTable(state: LuaState, depth: number): ByteReply {
  lua.lua_checkstack(state, 4);
  const error = readField(state, "err");
  if (error !== undefined) return new ReplyError(error.replace(/[\r\n]/g, " "));
  const status = readField(state, "ok");
  if (status !== undefined) return new Status(status.replace(/[\r\n]/g, " "));
  const items: ByteReply[] = [];
  for (let position = 1; ; position++) {
    const type = lua.lua_rawgeti(state, -1, position);
    if (type !== lua.LUA_TNIL) items.push(readReply(state, depth + 1));
    lua.lua_pop(state, 1);
    if (type === lua.LUA_TNIL) return items;
  }
}

/** Casts a double to 64 bits as C does on x86: a value that does not fit becomes the smallest integer. */
function toInteger(value: number): number {
  const whole = Math.trunc(value);
  // `+ 0` turns -0 into 0.
  return Math.abs(whole) < 2 ** 63 ? whole + 0 : -(2 ** 63);
}
