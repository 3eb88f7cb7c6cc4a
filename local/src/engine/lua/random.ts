import { toOctets } from "../commands/bytes.ts";
import { fengari, type LuaState } from "./dialect.ts";

const { lua, lauxlib } = fengari;

/**
 * math.random of Redis: the drand48 family of POSIX, with the same state after every start of a server.
 */
export class LuaRandom {
  #state = 0x1234abcd330en;

  /** Starts the sequence of a seed, as srand48 does. */
  seed(value: number): void {
    this.#state = (BigInt.asUintN(32, BigInt(Math.trunc(value))) << 16n) | 0x330en;
  }

  /** Implements math.random(), math.random(most) and math.random(least, most). */
  next(state: LuaState): number {
    const count = lua.lua_gettop(state);
    if (count > 2) lauxlib.luaL_error(state, toOctets("wrong number of arguments"));
    const share = this.#draw() / 0x7fffffff;
    if (count === 0) {
      lua.lua_pushnumber(state, share);
      return 1;
    }
    const least = count === 1 ? 1 : Math.trunc(lauxlib.luaL_checknumber(state, 1));
    const most = Math.trunc(lauxlib.luaL_checknumber(state, count));
    if (least > most) {
      lauxlib.luaL_error(state, toOctets(`bad argument #${count} to 'random' (interval is empty)`));
    }
    lua.lua_pushnumber(state, Math.floor(share * (most - least + 1)) + least);
    return 1;
  }

  /** A 31-bit number below 2^31 - 1, by which Redis divides. */
  #draw(): number {
    this.#state = BigInt.asUintN(48, this.#state * 0x5deece66dn + 0xbn);
    return Number(this.#state >> 17n) % 0x7fffffff;
  }
}
