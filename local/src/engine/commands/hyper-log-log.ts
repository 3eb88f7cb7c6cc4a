import { fromOctets } from "./bytes.ts";
import { type Commands, writes } from "./command.ts";
import type { Keyspace } from "./keyspace.ts";
import { murmurHash } from "./murmur-hash.ts";
import { ok, ReplyError } from "./reply.ts";

// Estimates how many different elements were added, as Redis does: the first 14 bits of an element's hash choose a
// register, which keeps the greatest length of a run of zeros after them. As in Redis, the value is a string: a header,
// then registers of 6 bits. Redis has a second, shorter form for few elements, which the engine neither writes nor reads.

const registerCount = 2 ** 14;
const hashBits = 50;
/** Magic, encoding 0 (dense), 3 unused bytes, and 8 of a cached estimate, whose first bit says that there is none. */
const header = `HYLL${"\0".repeat(11)}\x80`;
const size = header.length + (registerCount * 6) / 8;

/** Commands on HyperLogLogs. */
export const hyperLogLogCommands: Commands = {
  PFADD: writes(-2, (space, [key, ...elements]) => {
    const found = read(space, key!);
    const registers = found ?? new Uint8Array(registerCount);
    const grown = elements.filter((element) => raise(registers, ...registerOf(element))).length;
    if (found && grown === 0) return 0;
    write(space, key!, registers);
    return 1;
  }),
  PFCOUNT: { arity: -2, keys: [0, -1, 1], run: (space, keys) => estimate(merged(space, keys)) },
  PFMERGE: {
    arity: -2,
    keys: [0, -1, 1],
    write: true,
    run(space, keys) {
      write(space, keys[0]!, merged(space, keys));
      return ok;
    },
  },
};

/** The registers of a key; undefined if it does not exist. */
function read(space: Keyspace, key: string): Uint8Array | undefined {
  const value = space.value(key, "string");
  if (value === undefined) return undefined;
  if (value.length !== size || !value.startsWith(header.slice(0, 5))) {
    throw new ReplyError("WRONGTYPE Key is not a valid HyperLogLog string value.");
  }
  // The bits of a byte from the least on.
  return Uint8Array.from({ length: registerCount }, (_, register) => {
    const [at, shift] = placeOf(register);
    return ((value.charCodeAt(at) | (value.charCodeAt(at + 1) << 8)) >> shift) & 63;
  });
}

/** Writes the registers and keeps the deadline. */
function write(space: Keyspace, key: string, registers: Uint8Array): void {
  const octets = new Uint8Array(size);
  for (const [register, value] of registers.entries()) {
    const [at, shift] = placeOf(register);
    octets[at]! |= value << shift;
    if (shift > 2) octets[at + 1]! |= value >> (8 - shift);
  }
  const value = header + fromOctets(octets.subarray(header.length));
  space.put(key, "string", value, space.entry(key)?.deadline);
}

/** The byte in which a register begins, and the bit of it. */
function placeOf(register: number): [at: number, shift: number] {
  const bit = 6 * register;
  return [header.length + (bit >> 3), bit & 7];
}

/** The register of an element, and the length of its run of zeros, counted from 1. */
function registerOf(element: string): [register: number, run: number] {
  const hash = murmurHash(element);
  const bits = hash >> 14n;
  let run = 1;
  while (run <= hashBits && ((bits >> BigInt(run - 1)) & 1n) === 0n) run++;
  return [Number(hash & BigInt(registerCount - 1)), run];
}

/** Raises a register to a length, and returns whether it was less. */
function raise(registers: Uint8Array, register: number, run: number): boolean {
  if (registers[register]! >= run) return false;
  registers[register] = run;
  return true;
}

/** The greatest of each register of several keys. */
function merged(space: Keyspace, keys: readonly string[]): Uint8Array {
  const registers = new Uint8Array(registerCount);
  for (const key of keys) {
    for (const [register, run] of read(space, key)?.entries() ?? []) raise(registers, register, run);
  }
  return registers;
}

/** How many different elements there were, by Otmar Ertl's "New cardinality estimation algorithms" (2017), algorithm 6. */
function estimate(registers: Uint8Array): number {
  const lengths = new Array<number>(hashBits + 2).fill(0);
  for (const run of registers) lengths[run]!++;
  let sum = registerCount * tau((registerCount - lengths[hashBits + 1]!) / registerCount);
  for (let run = hashBits; run >= 1; run--) sum = 0.5 * (sum + lengths[run]!);
  sum += registerCount * sigma(lengths[0]! / registerCount);
  return Math.round((registerCount * registerCount) / (2 * Math.LN2 * sum));
}

/** The correction for registers that are still empty; `share` is how many of them are. */
function sigma(share: number): number {
  if (share === 1) return Infinity;
  let [power, weight, sum, before] = [share, 1, share, Number.NaN];
  while (sum !== before) {
    power *= power;
    before = sum;
    sum += power * weight;
    weight += weight;
  }
  return sum;
}

/** The correction for registers that can grow no more; `share` is how many are not among them. */
function tau(share: number): number {
  if (share === 0 || share === 1) return 0;
  let [root, weight, sum, before] = [share, 1, 1 - share, Number.NaN];
  while (sum !== before) {
    root = Math.sqrt(root);
    before = sum;
    weight *= 0.5;
    sum -= (1 - root) ** 2 * weight;
  }
  return sum / 3;
}
