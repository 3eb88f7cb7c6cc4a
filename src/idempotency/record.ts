import { quorumOf } from "../quorum/tally.ts";

// A letter and a version come first, so that no proxy parses a record as JSON or as a number:
//
//   P1 <token> <startedAt> <fingerprint>             running. The ttl is the lease
//   C1 <token> <completedAt> <fingerprint> <result>  complete. The ttl is the retention
//   N1 <token> <completedAt> <fingerprint> <reason>  complete, but the result could not be stored
//   A1 <token> <count>                               at a second key: runs that did not end, and the last one's token
//
// Times are ms since 1970. A fingerprint is `-` or hexadecimal.

export interface RunRecord {
  /** `pending`: it is running, or its process has died. */
  readonly state: "pending" | "complete";
  readonly token: string;
  /** Its begin or completion, in ms since 1970. */
  readonly at: number;
  readonly fingerprint: string;
  readonly result?: string | undefined;
  readonly unstored?: UnstoredReason | undefined;
}

/**
 * Why a complete record has no result. `unserializable`: the codec threw, or returned no well-formed string.
 * `too-large`: it exceeds `maxResult`, or the store refused it for its size.
 */
export type UnstoredReason = "unserializable" | "too-large";

export const noFingerprint = "-";

export function recordText({ state, token, at, fingerprint, result, unstored }: RunRecord): string {
  const head = `1 ${token} ${at} ${fingerprint}`;
  if (state === "pending") return `P${head}`;
  return unstored ? `N${head} ${unstored}` : `C${head} ${result}`;
}

/** Undefined: no record, or damaged. */
export function parseRecord(text: unknown): RunRecord | undefined {
  const match = typeof text === "string" && /^([PCN])1 (\S+) (\d+) (-|[0-9a-f]+)(?: (.*))?$/s.exec(text);
  if (!match) return undefined;
  const [, letter, token = "", time, fingerprint = "", result] = match;
  const at = Number(time);
  // Another spelling could not be written back identically.
  if (String(at) !== time) return undefined;
  const run = { token, at, fingerprint };
  if (letter === "P" && result === undefined) return { state: "pending", ...run };
  if (letter === "C" && result !== undefined) return { state: "complete", ...run, result };
  const isReason = result === "unserializable" || result === "too-large";
  return letter === "N" && isReason ? { state: "complete", ...run, unstored: result } : undefined;
}

export function countText({ token, count }: { readonly token: string; readonly count: number }): string {
  return `A1 ${token} ${count}`;
}

/** Undefined: no count, or damaged. */
export function countOf(text: string): number | undefined {
  const count = Number(/^A1 \S+ ([1-9]\d*)$/.exec(text)?.[1]);
  return Number.isSafeInteger(count) ? count : undefined;
}

export function isPending(text: string): boolean {
  return parseRecord(text)?.state === "pending";
}

export function isComplete(text: string): boolean {
  return parseRecord(text)?.state === "complete";
}

export type RecordState =
  /** `decided`: a quorum has the record. */
  | { readonly kind: "replay"; readonly record: RunRecord; readonly text: string; readonly decided: boolean }
  | { readonly kind: "mismatch"; readonly complete: boolean }
  | { readonly kind: "busy"; readonly record: RunRecord }
  /** A value is no record, and nothing else decides. */
  | { readonly kind: "corrupt" }
  /** No run has a quorum, and several may have a part each. They roll back and try again. */
  | { readonly kind: "split-vote" };

/**
 * Decides what records on some of `count` endpoints mean.
 *
 * - A mismatch comes before busy, because waiting would not help.
 * - The key is busy only if one run has a quorum. Otherwise all contenders might give up.
 * - A complete record on a minority means that the effect has happened, but another run may be storing a different
 *   result. So it must reach a quorum before any caller gets it.
 */
export function classifyRecords(texts: readonly string[], fingerprint: string, count: number): RecordState {
  const timesOf = (text: string) => texts.filter((other) => other === text).length;
  // Callers with equal answers must choose the same record: the most frequent one, then the first by text.
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
