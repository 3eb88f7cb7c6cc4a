import type { LockHolder } from "../errors.ts";
import type { Failure } from "../quorum/round.ts";
import { isVeto, quorumOf } from "../quorum/tally.ts";
import type { CellAnswer } from "../redis/cell.ts";
import { parseHolder } from "./note.ts";

type Answers = readonly (CellAnswer | Failure | undefined)[];

/** ms until a quorum of endpoints may be free. Undefined: too few have returned when they will be. */
export function timeUntilFree(answers: Answers): number | undefined {
  const held = answers.flatMap((answer) => (answer?.outcome === "held" ? [answer.retryAfter ?? 0] : []));
  const missing = quorumOf(answers.length) - (answers.length - held.length);
  const expiry = held.sort((a, b) => a - b)[missing - 1] ?? 0;
  return expiry > 0 ? expiry : undefined;
}

/**
 * A hash of the value in the way. It shows when the holder changes, and does not show the value, which is a secret.
 * Undefined: there is no such value, or it was not returned.
 */
export function holderHash(answers: Answers): number | undefined {
  const value = valueSeen(answers);
  return value === undefined ? undefined : hashOf(value);
}

/** What others may know of it. */
export function holderOf(answers: Answers): LockHolder | undefined {
  const value = valueSeen(answers);
  if (value === undefined) return undefined;
  return { note: parseHolder(value).note, expiresIn: timeUntilFree(answers) };
}

/** The value that is in the way at so many endpoints that no other can have a quorum. */
function valueSeen(answers: Answers): string | undefined {
  const shown = answers.flatMap((answer) => (answer?.outcome === "held" ? (answer.other ?? []) : []));
  return shown.find((one) => isVeto(shown.filter((other) => other === one).length, answers.length));
}

/** The hash of Java's strings. */
function hashOf(text: string): number {
  let hash = 0;
  for (const character of text) hash = (31 * hash + character.charCodeAt(0)) | 0;
  return hash;
}
