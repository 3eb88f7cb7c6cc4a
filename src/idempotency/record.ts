import { quorumOf } from "../quorum/tally.ts";

// The record of one key, as it is stored in Redis, and what the records that endpoints return mean.
//
// A record begins with a letter and a version, so that no client in between takes it for JSON or a number:
//   P1 <token> <startedAt> <fingerprint>             a run is under way; the ttl is its lease
//   C1 <token> <completedAt> <fingerprint> <result>  the run is complete; the ttl is the retention
//   N1 <token> <completedAt> <fingerprint> <reason>  the same, but its result could not be stored; the reason is
//                                                    `unserializable` or `too-large`
// Times are ms since 1970, a fingerprint is `-` or hexadecimal. Where runs are counted, a separate key has the number
// of runs that began and neither completed nor failed, and the token of the last one:
//   A1 <token> <count>

/** A run is under way, or its process has died. */
export interface PendingRecord {
  readonly state: "pending";
  readonly token: string;
  readonly startedAt: number;
  readonly fingerprint: string;
}

/** A run is complete; its effect has happened. */
export interface CompleteRecord {
  readonly state: "complete";
  readonly token: string;
  readonly completedAt: number;
  readonly fingerprint: string;
  /** As the codec encoded it; undefined where it could not be stored. */
  readonly result?: string | undefined;
  /** Why there is no result, where there is none. */
  readonly unstored?: UnstoredReason | undefined;
}

/**
 * Why the record of a complete run has no result. `unserializable`: the codec threw, or returned no well-formed
 * string. `too-large`: it exceeds `maxResult`, or the store refused it for its size.
 */
export type UnstoredReason = "unserializable" | "too-large";

/** Stands for: no fingerprint. */
export const noFingerprint = "-";

/** A pending record as text. */
export function pendingText(record: Omit<PendingRecord, "state">): string {
  return `P1 ${record.token} ${record.startedAt} ${record.fingerprint}`;
}

/** A complete record as text. */
export function completeText(record: Omit<CompleteRecord, "state">): string {
  const { token, completedAt, fingerprint, result, unstored } = record;
  return `${unstored ? "N1" : "C1"} ${token} ${completedAt} ${fingerprint} ${unstored ?? result}`;
}

/** Parses a record. Undefined: this library did not write the text, or it is damaged. */
export function parseRecord(text: unknown): PendingRecord | CompleteRecord | undefined {
  const match = typeof text === "string" && /^([PCN])1 (\S+) (\d+) (-|[0-9a-f]+)(?: (.*))?$/s.exec(text);
  if (!match) return undefined;
  const [, letter, token = "", time, fingerprint = "", result] = match;
  // More digits than a number has, or zeros before it: it could not be written the same again.
  if (String(Number(time)) !== time) return undefined;
  if (letter === "P" && result === undefined) {
    return { state: "pending", token, startedAt: Number(time), fingerprint };
  }
  if (letter === "C" && result !== undefined) {
    return { state: "complete", token, completedAt: Number(time), fingerprint, result };
  }
  if (letter === "N" && (result === "unserializable" || result === "too-large")) {
    return { state: "complete", token, completedAt: Number(time), fingerprint, unstored: result };
  }
  return undefined;
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

/** What the records of other runs mean for a run that begins. */
export type RecordState =
  /**
   * A run is complete. `decided`: a quorum has its record. Half of an even number of endpoints also keeps other
   * records from a quorum, but then each half may do so.
   */
  | {
      readonly kind: "replay";
      readonly record: CompleteRecord;
      readonly text: string;
      readonly decided: boolean;
    }
  /** A run with another fingerprint. `complete`: it is complete. */
  | { readonly kind: "mismatch"; readonly complete: boolean }
  /** Another run is under way. */
  | { readonly kind: "busy"; readonly record: PendingRecord }
  /** A value is not a record, and none decides. */
  | { readonly kind: "corrupt" }
  /** No run has a quorum, and several may have a part each: they roll back and try again. */
  | { readonly kind: "split-vote" };

/**
 * The state that follows from other runs' records on some of `count` endpoints.
 *
 * - A mismatch comes before busy: waiting would not help.
 * - The key is busy only if a quorum has the same run. Contenders with a part each must not all give up.
 * - A complete record on a minority means that the effect has happened, but another run may be storing a different
 *   result. It must reach a quorum before any caller gets it.
 */
export function classifyRecords(texts: readonly string[], fingerprint: string, count: number): RecordState {
  const quorum = quorumOf(count);
  const records = texts.map((text) => ({
    text,
    record: parseRecord(text),
    times: texts.filter((other) => other === text).length,
  }));
  const differing = records.filter(
    ({ record }) =>
      fingerprint !== noFingerprint &&
      record !== undefined &&
      record.fingerprint !== noFingerprint &&
      record.fingerprint !== fingerprint,
  );
  if (differing.length > 0) {
    return { kind: "mismatch", complete: differing.some(({ record }) => record?.state === "complete") };
  }
  // Every caller with the same answers must choose the same record: the most frequent one, then the first by text.
  records.sort((a, b) => b.times - a.times || (a.text < b.text ? -1 : 1));
  const complete = records.find(({ record }) => record?.state === "complete");
  const decided = complete !== undefined && complete.times >= quorum;
  for (const { record, times } of decided ? [] : records) {
    if (record?.state === "pending" && times >= quorum) return { kind: "busy", record };
  }
  if (complete) {
    return { kind: "replay", record: complete.record as CompleteRecord, text: complete.text, decided };
  }
  return { kind: records.every(({ record }) => record) ? "split-vote" : "corrupt" };
}
