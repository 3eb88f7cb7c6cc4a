import { toOctets } from "../commands/bytes.ts";
import { fengari, type LuaState } from "./dialect.ts";
import { name } from "./values.ts";

const { lua, lauxlib } = fengari;

/** What fengari compiles a chunk to. Nothing in it belongs to one machine, and nothing changes while it runs. */
type Prototype = unknown;

/** How many chunks are kept. A test suite has a few dozen scripts, and an engine for nearly each of its tests. */
const most = 200;

/** Longer ones are compiled each time, so that what is kept stays below 20 MB of text. */
const longest = 100_000;

const prototypes = /* @__PURE__ */ new Map<string, Prototype>();

/**
 * Pushes the function that a source compiles to, or a message. What was compiled for one machine is used for all, also
 * after SCRIPT FLUSH: compiling takes longer than most scripts run.
 *
 * @param chunk the chunk's name, as messages show it
 * @returns a status of Lua
 */
export function load(state: LuaState, source: string, chunk: string): number {
  const key = `${chunk}\n${source}`;
  const known = prototypes.get(key);
  const text = known ? empty : toOctets(source);
  // "t": text only, because bytecode could break out of the machine.
  const status = lauxlib.luaL_loadbufferx(state, text, text.length, name(chunk), name("t"));
  if (status !== lua.LUA_OK) return status;
  const closure = lua.lua_topointer(state, -1) as { p: Prototype };
  if (known) closure.p = known;
  else if (key.length <= longest) keep(key, closure.p);
  return status;
}

/** A chunk has one upvalue, the globals, whatever its text: that of an empty one can get another's prototype. */
const empty = /* @__PURE__ */ new Uint8Array(0);

function keep(key: string, prototype: Prototype): void {
  if (prototypes.size >= most) prototypes.delete(prototypes.keys().next().value!);
  prototypes.set(key, prototype);
}
