import { ReplyError } from "./reply.ts";

// An ID of a stream's entry, `<ms>-<sequence>`, is one number inside the engine: ms × 2^64 + sequence.

const bits = 64n;

/** The greatest ms, and the greatest sequence number. */
export const mostOfPart: bigint = (1n << bits) - 1n;
/** The greatest ID. */
export const greatestId: bigint = (mostOfPart << bits) | mostOfPart;

/** The ID of two parts. */
export function idOf(ms: bigint, sequence: bigint): bigint {
  return (ms << bits) | sequence;
}

/** The parts of an ID. */
export function partsOf(id: bigint): readonly [ms: bigint, sequence: bigint] {
  return [id >> bits, id & mostOfPart];
}

/** An ID as Redis prints it. */
export function printId(id: bigint): string {
  return partsOf(id).join("-");
}

/** Parses `<ms>-<sequence>` or `<ms>`, with `sequence` in the place of a missing one. Throws a `ReplyError`. */
export function parseId(word: string, sequence = 0n): bigint {
  const [, ms, given] = /^([0-9]+)(?:-([0-9]+))?$/.exec(word) ?? [];
  const parts = [BigInt(ms ?? -1), given === undefined ? sequence : BigInt(given)] as const;
  if (parts[0] < 0n || parts.some((part) => part > mostOfPart)) throw invalidId();
  return idOf(...parts);
}

/** The error for a word that is no ID. */
export function invalidId(): ReplyError {
  return new ReplyError("ERR Invalid stream ID specified as stream command argument");
}
