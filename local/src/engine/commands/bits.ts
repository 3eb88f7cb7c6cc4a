import { type Command, type Commands, reads, writes } from "./command.ts";
import type { Keyspace } from "./keyspace.ts";
import { index, integer, parseInteger } from "./numbers.ts";
import { type ByteReply, ReplyError, syntaxError } from "./reply.ts";

const longestString = 512 * 1024 * 1024;

/** Commands on the bits of strings. Bit 0 is the greatest of the first byte. */
export const bitCommands: Commands = {
  GETBIT: reads(3, (space, [key, at]) => {
    const offset = readOffset(at!);
    return bitAt(read(space, key!), offset);
  }),
  SETBIT: writes(4, (space, [key, at, bit]) => {
    const offset = readOffset(at!);
    if (bit !== "0" && bit !== "1") throw new ReplyError("ERR bit is not an integer or out of range");
    const before = read(space, key!);
    replace(space, key!, withBits(before, offset, 1, BigInt(bit)));
    return bitAt(before, offset);
  }),
  BITCOUNT: reads(-2, countBits),
  BITPOS: reads(-3, findBit),
  BITOP: {
    arity: -4,
    keys: [1, -1, 1],
    write: true,
    run: (space, words) => combine(space, words, operations),
  },
  BITFIELD: writes(-2, (space, [key, ...words]) => changeFields(space, key!, words, true)),
  BITFIELD_RO: reads(-2, (space, [key, ...words]) => changeFields(space, key!, words, false)),
};

function read(space: Keyspace, key: string): string {
  return space.value(key, "string") ?? "";
}

/** Changes the value and keeps the deadline. */
function replace(space: Keyspace, key: string, value: string): void {
  space.put(key, "string", value, space.entry(key)?.deadline);
}

function readOffset(word: string): number {
  const offset = parseInteger(word);
  if (offset === undefined || offset < 0n || offset >= 8 * longestString) {
    throw new ReplyError("ERR bit offset is not an integer or out of range");
  }
  return Number(offset);
}

function bitAt(value: string, offset: number): number {
  const byte = value.charCodeAt(Math.floor(offset / 8));
  return Number.isNaN(byte) ? 0 : (byte >> (7 - (offset % 8))) & 1;
}

/** The number in `width` bits from an offset; bits after the end of the string are 0. */
function bitsAt(value: string, offset: number, width: number): bigint {
  let bits = 0n;
  for (let position = offset; position < offset + width; position++) {
    bits = (bits << 1n) | BigInt(bitAt(value, position));
  }
  return bits;
}

/** The string with a number in `width` bits from an offset, longer if they are after its end. */
function withBits(value: string, offset: number, width: number, bits: bigint): string {
  const first = Math.floor(offset / 8);
  const last = Math.floor((offset + width - 1) / 8);
  const padded = value.padEnd(last + 1, "\0");
  const bytes = Array.from(padded.slice(first, last + 1), (byte) => byte.charCodeAt(0));
  for (let position = 0; position < width; position++) {
    const at = offset + position - 8 * first;
    const mask = 1 << (7 - (at % 8));
    const isSet = (bits >> BigInt(width - 1 - position)) & 1n;
    bytes[at >> 3] = isSet ? bytes[at >> 3]! | mask : bytes[at >> 3]! & ~mask;
  }
  return padded.slice(0, first) + String.fromCharCode(...bytes) + padded.slice(last + 1);
}

/** A range of bits, both ends included. */
type BitRange = readonly [from: number, to: number];

/** [start [end [BYTE | BIT]]] as a range of the bits of a string; undefined if it is empty. */
function readRange(value: string, [start, end, unit]: readonly string[]): BitRange | undefined {
  const [first, last] = [index(start ?? "0"), index(end ?? "-1")];
  const scale = readUnit(unit);
  const length = (value.length * 8) / scale;
  const from = Math.max(0, first < 0 ? length + first : first);
  const to = Math.min(length - 1, Math.max(0, last < 0 ? length + last : last));
  return from > to ? undefined : [from * scale, to * scale + scale - 1];
}

/** How many bits a unit has. */
function readUnit(word = "BYTE"): number {
  const unit = word.toUpperCase();
  if (unit !== "BYTE" && unit !== "BIT") throw syntaxError();
  return unit === "BIT" ? 1 : 8;
}

/** BITCOUNT key [start end [BYTE | BIT]] */
function countBits(space: Keyspace, [key, ...words]: readonly string[]): ByteReply {
  const value = space.value(key!, "string");
  // Redis does not look at the range of a missing key.
  if (value === undefined) return 0;
  if (words.length === 1 || words.length > 3) throw syntaxError();
  const [first, last] = [index(words[0] ?? "0"), index(words[1] ?? "-1")];
  if (first < 0 && last < first) return 0;
  const range = readRange(value, words);
  let count = 0;
  for (let offset = range?.[0] ?? 0; range && offset <= range[1]; offset++) count += bitAt(value, offset);
  return count;
}

/** BITPOS key bit [start [end [BYTE | BIT]]] */
function findBit(space: Keyspace, [key, bit, ...words]: readonly string[]): ByteReply {
  const wanted = integer(bit!);
  if (wanted !== 0n && wanted !== 1n) throw new ReplyError("ERR The bit argument must be 1 or 0.");
  const found = space.value(key!, "string");
  if (found === undefined) return wanted === 0n ? 0 : -1;
  if (words.length > 3) throw syntaxError();
  // Redis finds a wrong unit before a wrong end.
  index(words[0] ?? "0");
  readUnit(words[2]);
  const range = readRange(found, words);
  if (!range) return -1;
  for (let offset = range[0]; offset <= range[1]; offset++) {
    if (bitAt(found, offset) === Number(wanted)) return offset;
  }
  // Without an end, the string counts as if zeros followed it.
  return wanted === 0n && words.length < 2 ? range[1] + 1 : -1;
}

/** BITOP with the operations DIFF, DIFF1, ANDOR and ONE. Upstash has them, and Redis from 8.2 on. */
export const combineMore: Command = {
  arity: -4,
  keys: [1, -1, 1],
  write: true,
  run: (space, words) => combine(space, words, moreOperations),
};

/** BITOP AND | OR | XOR | NOT destination key … */
function combine(
  space: Keyspace,
  [operation, to, ...keys]: readonly string[],
  known: typeof operations,
): ByteReply {
  const name = operation!.toUpperCase();
  const combineBytes = known[name];
  if (!combineBytes) throw syntaxError();
  if (/^(?:DIFF1?|ANDOR)$/.test(name) && keys.length < 2) {
    throw new ReplyError(`ERR BITOP ${name} must be called with at least two source keys.`);
  }
  if (name === "NOT" && keys.length !== 1) {
    throw new ReplyError("ERR BITOP NOT must be called with a single source key.");
  }
  const values = keys.map((key) => read(space, key));
  const length = Math.max(...values.map((value) => value.length));
  let result = "";
  for (let position = 0; position < length; position++) {
    const bytes = values.map((value) => value.charCodeAt(position) || 0);
    result += String.fromCharCode(combineBytes(bytes) & 0xff);
  }
  space.delete(to!);
  if (length > 0) space.put(to!, "string", result, undefined);
  return length;
}

function or(bytes: readonly number[]): number {
  return bytes.reduce((left, right) => left | right);
}

const operations: Readonly<Record<string, (bytes: readonly number[]) => number>> = {
  AND: (bytes) => bytes.reduce((left, right) => left & right),
  OR: or,
  XOR: (bytes) => bytes.reduce((left, right) => left ^ right),
  NOT: ([byte]) => ~byte!,
};

const moreOperations: typeof operations = {
  ...operations,
  DIFF: ([first, ...others]) => first! & ~or(others),
  DIFF1: ([first, ...others]) => ~first! & or(others),
  ANDOR: ([first, ...others]) => first! & or(others),
  // The bits that are set in one of them only.
  ONE(bytes) {
    let [one, more] = [0, 0];
    for (const byte of bytes) {
      more |= one & byte;
      one |= byte;
    }
    return one & ~more;
  },
};

type Overflow = "WRAP" | "SAT" | "FAIL";

/** One operation of BITFIELD. */
interface FieldOperation {
  readonly kind: "GET" | "SET" | "INCRBY";
  readonly signed: boolean;
  readonly width: number;
  readonly offset: number;
  readonly value: bigint;
  readonly overflow: Overflow;
}

/** BITFIELD key [GET type offset | SET type offset value | INCRBY type offset by | OVERFLOW WRAP | SAT | FAIL] … */
function changeFields(space: Keyspace, key: string, words: readonly string[], mayWrite: boolean): ByteReply {
  const operations = readOperations(words);
  if (!mayWrite && operations.some(({ kind }) => kind !== "GET")) {
    throw new ReplyError("ERR BITFIELD_RO only supports the GET subcommand");
  }
  let value = read(space, key);
  const replies: ByteReply[] = [];
  for (const operation of operations) {
    const { kind, signed, width, offset } = operation;
    const before = asNumber(bitsAt(value, offset, width), signed, width);
    if (kind === "GET") {
      replies.push(Number(before));
      continue;
    }
    // Redis reads a negative value for an unsigned field as one of 64 bits, above what the field can hold.
    const given = kind === "SET" && !signed ? BigInt.asUintN(64, operation.value) : operation.value;
    const wanted = kind === "SET" ? given : before + given;
    const after = storable(wanted, operation);
    replies.push(after === undefined ? null : Number(kind === "SET" ? before : after));
    // An operation that fails still makes the string as long as its field needs.
    const stored = after ?? before;
    value = withBits(value, offset, width, BigInt.asUintN(width, stored));
  }
  if (operations.some(({ kind }) => kind !== "GET")) replace(space, key, value);
  return replies;
}

function readOperations(words: readonly string[]): FieldOperation[] {
  const operations: FieldOperation[] = [];
  let overflow: Overflow = "WRAP";
  for (let position = 0; position < words.length; ) {
    const kind = words[position++]!.toUpperCase();
    const [first, second, third] = words.slice(position);
    if (kind === "OVERFLOW" && first !== undefined) {
      overflow = readOverflow(first);
      position++;
    } else if (kind === "GET" && second !== undefined) {
      operations.push({ kind, ...readField(first!, second), value: 0n, overflow });
      position += 2;
    } else if ((kind === "SET" || kind === "INCRBY") && third !== undefined) {
      operations.push({ kind, ...readField(first!, second!), value: integer(third), overflow });
      position += 3;
    } else {
      throw syntaxError();
    }
  }
  return operations;
}

function readOverflow(word: string): Overflow {
  const overflow = word.toUpperCase();
  if (overflow === "WRAP" || overflow === "SAT" || overflow === "FAIL") return overflow;
  throw new ReplyError("ERR Invalid OVERFLOW type specified");
}

/** Parses the type (`u8`, `i16`) and the offset, in bits or, with `#`, in fields. */
function readField(type: string, at: string): Pick<FieldOperation, "signed" | "width" | "offset"> {
  const [, sign, digits] = /^([ui])([1-9][0-9]?)$/.exec(type) ?? [];
  const width = Number(digits);
  if (sign === undefined || width > (sign === "u" ? 63 : 64)) {
    throw new ReplyError(
      "ERR Invalid bitfield type. Use something like i16 u8. " + "Note that u64 is not supported but i64 is.",
    );
  }
  const isCount = at.startsWith("#");
  const given = parseInteger(isCount ? at.slice(1) : at);
  const offset = given === undefined ? -1 : Number(given) * (isCount ? width : 1);
  if (offset < 0 || (offset + width) / 8 > longestString) {
    throw new ReplyError("ERR bit offset is not an integer or out of range");
  }
  return { signed: sign === "i", width, offset };
}

function asNumber(bits: bigint, signed: boolean, width: number): bigint {
  return signed ? BigInt.asIntN(width, bits) : bits;
}

/** The value that is stored for a number that may be out of range; undefined if the operation fails. */
function storable(value: bigint, { kind, signed, width, overflow }: FieldOperation): bigint | undefined {
  const least = signed ? -(1n << BigInt(width - 1)) : 0n;
  const most = (1n << BigInt(signed ? width - 1 : width)) - 1n;
  if (value >= least && value <= most) return value;
  if (overflow === "FAIL") return undefined;
  if (overflow === "SAT") {
    // Redis subtracts in 64 bits: where that wraps, a number far too small counts as one that is too large.
    const wraps = kind === "SET" && BigInt.asIntN(64, most - value) < 0n;
    return value < least && !wraps ? least : most;
  }
  return asNumber(BigInt.asUintN(width, value), signed, width);
}
