// fengari is Lua 5.3 with 32-bit integers: 2147483647 + 1 wraps, 10/2 prints as "5.0", and a timestamp in ms does not
// fit. Redis has Lua 5.1, where every number is a double. The functions of the virtual machine that differ are replaced
// here, so that no value counts as an integer.

import { remainderIsReplaced } from "./remainder.ts";

// remainder.ts must be loaded before the machine, so every other file imports fengari from here.

export { default as fengari, type LuaFunction, type LuaState } from "fengari";

import ldebug from "fengari/src/ldebug.js";
import lobject, { type TValue } from "fengari/src/lobject.js";
import lstring, { type TString } from "fengari/src/lstring.js";
import ltable, { type Table } from "fengari/src/ltable.js";
import lvm from "fengari/src/lvm.js";
import { fromOctets, toOctets } from "../commands/bytes.ts";
import { formatGeneral, parseFloatStrict } from "../commands/numbers.ts";

let applied = false;

/**
 * Makes fengari compute, parse and print numbers as Lua 5.1 does, and respect {@link Table.readOnly}. Changes the one
 * loaded copy of fengari; a second call does nothing.
 */
export function applyLua51(): void {
  if (applied) return;
  applied = true;
  if (!remainderIsReplaced()) throw new Error("another copy of fengari's limits is in use");
  treatNumbersAsDoubles();
  printNumbersInMessages();
  hashStringsByBytes();
  protectReadOnlyTables();
}

function treatNumbersAsDoubles(): void {
  const number = lobject.TValue.prototype;
  number.ttisinteger = () => false;
  number.ttisfloat = number.ttisnumber;
  number.setivalue = number.setfltvalue;
  lobject.luaO_str2num = (octets, result) => {
    const value = readNumber(fromOctets(octets));
    if (value === undefined) return 0;
    result.setfltvalue(value);
    // The length with C's terminating zero: the callers check it to see that the whole string was a number.
    return octets.length + 1;
  };
  lobject.luaO_tostring = (state, value) => {
    value.setsvalue(lstring.luaS_bless(state, toOctets(printNumber(value.value as number))));
  };
  lvm.tointeger = (value: TValue) => {
    const found = lvm.tonumber(value);
    // Lua 5.1 truncates where a function expects an integer.
    return found === false ? false : Number.isNaN(found) ? 0 : Math.trunc(found);
  };
}

/** Formats the numbers of error messages before fengari does: it would print line numbers as "1.0". */
function printNumbersInMessages(): void {
  const pushFormatted = lobject.luaO_pushvfstring;
  lobject.luaO_pushvfstring = (state, format, values) => {
    const printed = [...values];
    let next = 0;
    const text = fromOctets(format).replace(/%([\s\S])/g, (item, kind) => {
      if (kind === "%") return item;
      const position = next++;
      if (!"dIf".includes(kind)) return item;
      printed[position] = toOctets(printNumber(printed[position] as number));
      return "%s";
    });
    return pushFormatted(state, toOctets(text), printed);
  };
  lobject.luaO_pushfstring = (state, format, ...values) => lobject.luaO_pushvfstring(state, format, values);
}

/**
 * Replaces the hash by which tables find strings: two hex digits for each byte. fengari's has no leading zeros, so
 * "\1#" and "\18\3" would be the same key.
 */
function hashStringsByBytes(): void {
  const hex = Array.from({ length: 256 }, (_, octet) => octet.toString(16).padStart(2, "0"));
  Object.defineProperty(lstring.TString.prototype, "hash", {
    get(this: TString) {
      if (this.digits === undefined) {
        let digits = "|";
        for (let index = 0; index < this.realstring.length; index++) digits += hex[this.realstring[index]!];
        this.digits = digits;
      }
      return this.digits;
    },
    set() {
      // The constructor of TString sets it to null: not computed yet.
    },
  });
}

function protectReadOnlyTables(): void {
  const set = ltable.luaH_setfrom;
  ltable.luaH_setfrom = (state, table: Table, key, value) => {
    if (table.readOnly) ldebug.luaG_runerror(state, toOctets("Attempt to modify a readonly table"));
    set(state, table, key, value);
  };
}

/** A number as Lua 5.1's tostring prints it: 14 digits. */
export function printNumber(value: number): string {
  return formatGeneral(value, 14);
}

/** A number as Redis passes it from a script to a command: 17 digits, enough for every double. */
export function printArgument(value: number): string {
  return Number.isSafeInteger(value) && !Object.is(value, -0) ? String(value) : formatGeneral(value, 17);
}

/** Parses a number as Lua 5.1's tonumber does: by C's strtod, with optional white space around it. */
export function readNumber(text: string): number | undefined {
  const word = text.replace(/^[ \t\n\v\f\r]+|[ \t\n\v\f\r]+$/g, "");
  return /^[+-]?nan$/i.test(word) ? Number.NaN : parseFloatStrict(word);
}

/**
 * Finds the first operator of Lua 5.3 that 5.1 does not have: integer division, bit operators and labels. Otherwise a
 * script could pass its tests here and be refused by Redis.
 */
export function newerSyntax(
  source: string,
): { readonly line: number; readonly operator: string } | undefined {
  const tokens =
    /--\[(=*)\[[\s\S]*?\]\1\]|--[^\n]*|\[(=*)\[[\s\S]*?\]\2\]|"(?:\\[\s\S]|[^"\\\n])*"|'(?:\\[\s\S]|[^'\\\n])*'|\/\/|<<|>>|::|[&|]|~(?!=)/g;
  for (const { 0: token, index } of source.matchAll(tokens)) {
    if (/^(?:\/\/|<<|>>|::|[&|~])$/.test(token)) {
      return { line: source.slice(0, index).split("\n").length, operator: token };
    }
  }
  return undefined;
}

/**
 * Rewrites an error message of Lua 5.3 as 5.1 words it.
 *
 * @example
 * lua51Message("attempt to index a nil value (local 'x')"); // "attempt to index local 'x' (a nil value)"
 */
export function lua51Message(message: string): string {
  return message
    .replace(
      /(attempt to [a-z ]+?) (an? \w+ value) \((local|global|field|upvalue|method) '(.*)'\)$/,
      "$1 $3 '$4' ($2)",
    )
    .replace(/(attempt to [a-z ]+? an? \w+ value) \(constant '.*'\)$/, "$1");
}
