import { fromOctets } from "./bytes.ts";
import { type Commands, writes } from "./command.ts";
import type { Keyspace } from "./keyspace.ts";
import { murmurHash } from "./murmur-hash.ts";
import { ok, ReplyError } from "./reply.ts";

// Estimates how many different elements were added, as Redis does: the first 14 bits of an element's hash choose a
// cell, which keeps the greatest length of a run of zeros after them. As in Redis, the value is a string: a header,
// then cells of 6 bits. Redis has a second, shorter form for few elements, which the engine neither writes nor reads.

const cellCount = 2 ** 14;
const hashBits = 50;
/** Magic, encoding 0 (dense), 3 unused bytes, and 8 of a cached estimate, whose first bit says that there is none. */
const header = `HYLL${"\0".repeat(11)}\x80`;
const size = header.length + (cellCount * 6) / 8;

/** Commands on HyperLogLogs. */
export const hyperLogLogCommands: Commands = {
  PFADD: writes(-2, (space, [key, ...elements]) => {
    const found = read(space, key!);
    const cells = found ?? new Uint8Array(cellCount);
    const grown = elements.filter((element) => raise(cells, ...registerOf(element))).length;
    if (found && grown === 0) return 0;
    write(space, key!, cells);
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

/** The cells of a key; undefined if it does not exist. */
function read(space: Keyspace, key: string): Uint8Array | undefined {
  const value = space.value(key, "string");
  if (value === undefined) return undefined;
  if (value.length !== size || !value.startsWith(header.slice(0, 5))) {
    throw new ReplyError("WRONGTYPE Key is not a valid HyperLogLog string value.");
  }
  // The bits of a byte from the least on.
  return Uint8Array.from({ length: cellCount }, (_, cell) => {
    const [at, shift] = placeOf(cell);
    return ((value.charCodeAt(at) | (value.charCodeAt(at + 1) << 8)) >> shift) & 63;
  });
}

/** Writes the cells and keeps the deadline. */
function write(space: Keyspace, key: string, cells: Uint8Array): void {
  const octets = new Uint8Array(size);
  for (const [cell, value] of cells.entries()) {
    const [at, shift] = placeOf(cell);
    octets[at]! |= value << shift;
    if (shift > 2) octets[at + 1]! |= value >> (8 - shift);
  }
  const value = header + fromOctets(octets.subarray(header.length));
  space.put(key, "string", value, space.entry(key)?.deadline);
}

/** The byte in which a cell begins, and the bit of it. */
function placeOf(cell: number): [at: number, shift: number] {
  const bit = 6 * cell;
  return [header.length + (bit >> 3), bit & 7];
}

/** The cell of an element, and the length of its run of zeros, counted from 1. */
function registerOf(element: string): [cell: number, run: number] {
  const hash = murmurHash(element);
  const bits = hash >> 14n;
  let run = 1;
  while (run <= hashBits && ((bits >> BigInt(run - 1)) & 1n) === 0n) run++;
  return [Number(hash & BigInt(cellCount - 1)), run];
}

/** Raises a cell to a length, and returns whether it was less. */
function raise(cells: Uint8Array, cell: number, run: number): boolean {
  if (cells[cell]! >= run) return false;
  cells[cell] = run;
  return true;
}

/** The greatest of each cell of several keys. */
function merged(space: Keyspace, keys: readonly string[]): Uint8Array {
  const cells = new Uint8Array(cellCount);
  for (const key of keys) {
    for (const [cell, run] of read(space, key)?.entries() ?? []) raise(cells, cell, run);
  }
  return cells;
}

/** How many different elements there were, by Otmar Ertl's "New cardinality estimation algorithms" (2017), algorithm 6. */
function estimate(cells: Uint8Array): number {
  const lengths = new Array<number>(hashBits + 2).fill(0);
  for (const run of cells) lengths[run]!++;
  let sum = cellCount * tau((cellCount - lengths[hashBits + 1]!) / cellCount);
  for (let run = hashBits; run >= 1; run--) sum = 0.5 * (sum + lengths[run]!);
  sum += cellCount * sigma(lengths[0]! / cellCount);
  return Math.round((cellCount * cellCount) / (2 * Math.LN2 * sum));
}

/** The correction for cells that are still empty; `share` is how many of them are. */
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

/** The correction for cells that can grow no more; `share` is how many are not among them. */
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
