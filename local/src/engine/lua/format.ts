import { fromOctets, toOctets } from "../commands/bytes.ts";
import { formatFixed, formatGeneral, formatScientific } from "../commands/numbers.ts";
import { fengari, type LuaState, printNumber } from "./dialect.ts";

const { lua, lauxlib } = fengari;

/** One directive of a format, for example `%-5.2f`. */
interface Directive {
  /** Its letter. */
  readonly kind: string;
  readonly flags: string;
  readonly width: number;
  readonly precision: number | undefined;
}

/** string.format of Lua 5.1: %d takes integers of any size, %s only strings and numbers, and there is no %a. */
export function stringFormat(state: LuaState): number {
  const format = fromOctets(lauxlib.luaL_checkstring(state, 1));
  let argument = 1;
  const text = format.replace(
    /%(%|([-+ #0]*)(\d*)(?:\.(\d*))?([\s\S])|$)/g,
    (_, rest: string, ...parts: readonly string[]) => {
      if (rest === "%") return "%";
      argument++;
      const directive = readDirective(state, rest, parts);
      return pad(convert(state, argument, directive), directive);
    },
  );
  lua.lua_pushstring(state, toOctets(text));
  return 1;
}

function readDirective(state: LuaState, rest: string, parts: readonly (string | undefined)[]): Directive {
  const [flags = "", width = "", precision, kind = ""] = parts;
  if (rest === "" || flags.length > 5 || width.length > 2 || (precision ?? "").length > 2) {
    return fail(state, "invalid format (width or precision too long)");
  }
  return {
    kind,
    flags,
    width: Number(width),
    precision: precision === undefined ? undefined : Number(precision),
  };
}

function convert(state: LuaState, argument: number, { kind, flags, precision }: Directive): string {
  if (lua.lua_gettop(state) < argument) {
    // Not left to luaL_check…: Lua 5.1 does not name the missing type.
    return fail(state, `bad argument #${argument} to 'format' (no value)`);
  }
  switch (kind) {
    case "c":
      return String.fromCharCode(lauxlib.luaL_checknumber(state, argument) & 255);
    case "d":
    case "i":
      return formatInteger(BigInt(whole(state, argument)), 10, flags, precision);
    case "u":
      return formatInteger(BigInt.asUintN(64, BigInt(whole(state, argument))), 10, "", precision);
    case "o":
    case "x":
    case "X": {
      const value = BigInt.asUintN(64, BigInt(whole(state, argument)));
      const digits = formatInteger(value, kind === "o" ? 8 : 16, "", precision);
      const prefix = flags.includes("#") && value !== 0n ? (kind === "o" ? "0" : "0x") : "";
      return kind === "X" ? (prefix + digits).toUpperCase() : prefix + digits;
    }
    case "e":
    case "E":
    case "f":
    case "g":
    case "G": {
      const value = lauxlib.luaL_checknumber(state, argument);
      const print = { e: formatScientific, f: formatFixed, g: formatGeneral }[
        kind.toLowerCase() as "e" | "f" | "g"
      ];
      const digits = withSign(print(value, precision ?? 6), flags);
      return kind === "E" || kind === "G" ? digits.toUpperCase() : digits;
    }
    case "q":
      return quote(fromOctets(lauxlib.luaL_checkstring(state, argument)));
    case "s": {
      const text = stringArgument(state, argument);
      return precision === undefined ? text : text.slice(0, precision);
    }
    default:
      return fail(state, `invalid option '%${kind}' to 'format'`);
  }
}

function stringArgument(state: LuaState, argument: number): string {
  const type = lua.lua_type(state, argument);
  if (type === lua.LUA_TNUMBER) return printNumber(lua.lua_tonumber(state, argument));
  if (type === lua.LUA_TSTRING) return fromOctets(lua.lua_tostring(state, argument)!);
  const name = fromOctets(lua.lua_typename(state, type));
  return fail(state, `bad argument #${argument} to 'format' (string expected, got ${name})`);
}

/** The integer part of a number argument, cast to 64 bits as in C on x86. */
function whole(state: LuaState, argument: number): number {
  const value = Math.trunc(lauxlib.luaL_checknumber(state, argument));
  return Math.abs(value) < 2 ** 63 ? value : -(2 ** 63);
}

function formatInteger(value: bigint, base: number, flags: string, precision = 1): string {
  const digits = (value < 0n ? -value : value).toString(base).padStart(precision, "0");
  return withSign(value < 0n ? `-${digits}` : digits, flags);
}

function withSign(digits: string, flags: string): string {
  if (digits.startsWith("-")) return digits;
  return flags.includes("+") ? `+${digits}` : flags.includes(" ") ? ` ${digits}` : digits;
}

function pad(text: string, { flags, width }: Directive): string {
  if (flags.includes("-")) return text.padEnd(width);
  if (!flags.includes("0")) return text.padStart(width);
  const sign = /^[-+ ]/.exec(text)?.[0] ?? "";
  return sign + text.slice(sign.length).padStart(width - sign.length, "0");
}

function quote(text: string): string {
  const escaped = text
    .replace(/["\\\n]/g, "\\$&")
    .replaceAll("\r", "\\r")
    .replaceAll("\0", "\\000");
  return `"${escaped}"`;
}

function fail(state: LuaState, message: string): never {
  return lauxlib.luaL_error(state, toOctets(message.replaceAll("%", "%%")));
}
