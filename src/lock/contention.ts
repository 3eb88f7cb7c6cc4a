import type { LockHolder } from "../errors/errors.ts";
import type { Call } from "../quorum/round.ts";
import { isVeto, quorumOf } from "../quorum/tally.ts";
import type { CellAnswer } from "../redis/cell.ts";
import { parseHolder } from "./note.ts";

const mostHolds = 1_000;

/** For an error that says that the client is in its own way. */
export class OwnHolds {
  /** By key, the oldest first. */
  readonly #holds = new Map<string, { remaining(): number }>();

  add(keys: readonly string[], hold: { remaining(): number }): void {
    for (const [key, oldest] of this.#holds) {
      if (oldest.remaining() > 0 && this.#holds.size < mostHolds) break;
      this.#holds.delete(key);
    }
    for (const key of keys) {
      // First, because a known key would keep its place.
      this.#holds.delete(key);
      this.#holds.set(key, hold);
    }
  }

  has(keys: readonly string[]): boolean {
    return keys.some((key) => (this.#holds.get(key)?.remaining() ?? 0) > 0);
  }
}

type Calls = readonly Pick<Call<CellAnswer>, "answer">[];

/** Undefined: too few endpoints say. */
export function timeUntilFree(calls: Calls): number | undefined {
  const held = calls.flatMap(({ answer }) => (answer?.outcome === "held" ? [answer.retryAfter ?? 0] : []));
  const missing = quorumOf(calls.length) - (calls.length - held.length);
  const expiry = held.sort((a, b) => a - b)[missing - 1] ?? 0;
  return expiry > 0 ? expiry : undefined;
}

/** Without its nonce, a secret. */
export function holderOf(calls: Calls): LockHolder | undefined {
  const value = valueSeen(calls);
  if (value === undefined) return undefined;
  return { note: parseHolder(value).note, expiresIn: timeUntilFree(calls) };
}

function valueSeen(calls: Calls): string | undefined {
  const shown = calls.flatMap(({ answer }) => (answer?.outcome === "held" ? (answer.other ?? []) : []));
  return shown.find((one) => isVeto(shown.filter((other) => other === one).length, calls.length));
}
