import { quorumOf } from "../quorum/tally.ts";

// The record of one key, as it is stored in Redis, and the meaning of the records that endpoints return.
//
// A record begins with a letter and a version, so that no client in between takes it for JSON or a number:
//   P1 <token> <startedAt> <fingerprint>             a run is running, and the ttl is its lease
//   C1 <token> <completedAt> <fingerprint> <result>  the run is complete, and the ttl is the retention
//   N1 <token> <completedAt> <fingerprint> <reason>  also complete, but its result could not be stored. The reason is
//                                                    `unserializable` or `too-large`
// Times are ms since 1970, a fingerprint is `-` or hexadecimal. Where runs are counted, a separate key has the number
// of runs that began and neither completed nor failed, and the token of the last one:
//   A1 <token> <count>

/** The stored state of a run. */
export interface RunRecord {
  /** `pending`: it is under way, or its process has died. `complete`: its effect has happened. */
  readonly state: "pending" | "complete";
  readonly token: string;
  /** When it began or completed, in ms since 1970. */
  readonly at: number;
  readonly fingerprint: string;
  /** Of a complete run, as the codec encoded it. Undefined: it could not be stored. */
  readonly result?: string | undefined;
  /** Of a complete run: why there is no result. */
  readonly unstored?: UnstoredReason | undefined;
}

/**
 * Why the record of a complete run has no result. `unserializable`: the codec threw, or returned no well-formed
 * string. `too-large`: it exceeds `maxResult`, or the store refused it for its size.
 */
export type UnstoredReason = "unserializable" | "too-large";

/** Stands for: no fingerprint. */
export const noFingerprint = "-";

/** A record as text. */
export function recordText({ state, token, at, fingerprint, result, unstored }: RunRecord): string {
  const head = `1 ${token} ${at} ${fingerprint}`;
  if (state === "pending") return `P${head}`;
  return unstored ? `N${head} ${unstored}` : `C${head} ${result}`;
}

/** Parses a record. Undefined: this library did not write the text, or it is damaged. */
export function parseRecord(text: unknown): RunRecord | undefined {
  const match = typeof text === "string" && /^([PCN])1 (\S+) (\d+) (-|[0-9a-f]+)(?: (.*))?$/s.exec(text);
  if (!match) return undefined;
  const [, letter, token = "", time, fingerprint = "", result] = match;
  const at = Number(time);
  // More digits than a number has, or zeros before it: it could not be written identically again.
  if (String(at) !== time) return undefined;
  const run = { token, at, fingerprint };
  if (letter === "P" && result === undefined) return { state: "pending", ...run };
  if (letter === "C" && result !== undefined) return { state: "complete", ...run, result };
  const isReason = result === "unserializable" || result === "too-large";
  return letter === "N" && isReason ? { state: "complete", ...run, unstored: result } : undefined;
}

/** A count of runs as text. */
export function countText({ token, count }: { readonly token: string; readonly count: number }): string {
  return `A1 ${token} ${count}`;
}

/** Parses a count of runs. Undefined: this library did not write the text, or it is damaged. */
export function countOf(text: string): number | undefined {
  const count = Number(/^A1 \S+ ([1-9]\d*)$/.exec(text)?.[1]);
  return Number.isSafeInteger(count) ? count : undefined;
}

/** Whether a text is the record of a run under way. */
export function isPending(text: string): boolean {
  return parseRecord(text)?.state === "pending";
}

/** Whether a text is a complete record. */
export function isComplete(text: string): boolean {
  return parseRecord(text)?.state === "complete";
}

/** The meaning of other runs' records for a run that begins. */
export type RecordState =
  /**
   * A run is complete. `decided`: a quorum has its record. Half of an even number of endpoints also keeps other
   * records from a quorum, but then each half may do so.
   */
  | { readonly kind: "replay"; readonly record: RunRecord; readonly text: string; readonly decided: boolean }
  /** A run with another fingerprint. `complete`: it is complete. */
  | { readonly kind: "mismatch"; readonly complete: boolean }
  /** Another run is under way. */
  | { readonly kind: "busy"; readonly record: RunRecord }
  /** A value is not a record, and none decides. */
  | { readonly kind: "corrupt" }
  /** No run has a quorum, and several may have a part each: they roll back and try again. */
  | { readonly kind: "split-vote" };

/**
 * The state that follows from other runs' records on some of `count` endpoints.
 *
 * - A mismatch comes before busy: waiting would not help.
 * - The key is busy only if a quorum has one run. Contenders with a part each must not all give up.
 * - A complete record on a minority means that the effect has happened, but another run may be storing a different
 *   result. It must reach a quorum before any caller gets it.
 */
export function classifyRecords(texts: readonly string[], fingerprint: string, count: number): RecordState {
  const timesOf = (text: string) => texts.filter((other) => other === text).length;
  // All callers with equal answers must choose one record: the most frequent one, then the first by text.
  const sorted = [...texts].sort((a, b) => timesOf(b) - timesOf(a) || (a < b ? -1 : 1));
  const records = sorted.map(parseRecord);
  const prints = [noFingerprint, fingerprint];
  const differing = records.filter((record) => record && !prints.includes(record.fingerprint));
  if (fingerprint !== noFingerprint && differing.length > 0) {
    return { kind: "mismatch", complete: differing.some((record) => record?.state === "complete") };
  }
  const isDecided = (text: string) => timesOf(text) >= quorumOf(count);
  const [first] = records;
  if (first?.state === "pending" && isDecided(sorted[0]!)) return { kind: "busy", record: first };
  for (const [index, record] of records.entries()) {
    const text = sorted[index]!;
    if (record?.state === "complete") return { kind: "replay", record, text, decided: isDecided(text) };
  }
  return { kind: records.includes(undefined) ? "corrupt" : "split-vote" };
}
