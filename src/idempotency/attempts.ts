import { unlessAborted } from "../abort.ts";
import type { Ask } from "../endpoints/ask.ts";
import type { Vote } from "../errors.ts";
import { type Round, runRound } from "../quorum/round.ts";
import type { Answer, RoundResult } from "../quorum/tally.ts";
import { undoQuietly, unlessRefused } from "../quorum/undo.ts";
import { type Cell, claimOrRead, end, keep } from "../redis/cell.ts";
import type { RunClaim } from "./claim.ts";
import { countOf, countText } from "./record.ts";
import type { RunRequest } from "./run-request.ts";

/** A run among those of its key that began and neither completed nor failed. */
export interface Attempt {
  /** Whether the handler may begin. */
  readonly state: CountState;
  /** Takes the count back: the handler has not begun. */
  undo(): Promise<void>;
  /** Deletes the count: the handler has failed, so this run has ended, and nothing counts any more. */
  clear(): Promise<void>;
  votes(): Vote[];
}

/** The count at one endpoint. */
type CountSnapshot = Answer & {
  /** The text that this run has found or written. */
  readonly text: string;
  /** The count before this run; 0: none. */
  readonly before: number;
};

/**
 * Counts a run before its handler begins. A quorum then has its count; the next run reads it at one endpoint at least
 * and exceeds it. So each run that began has a count of its own, and none goes missing. Every write compares with a
 * text that this run has read or written: a late one cannot change what a later run has counted.
 *
 * @param within ms of the claim that remain
 */
export async function countAttempt(
  { settings, counter, retention, maxAttempts, signal }: RunRequest<unknown>,
  { token }: RunClaim,
  within: number,
): Promise<Attempt> {
  const cellOf = (count: number): Cell => ({ keys: [counter], value: countText({ count, token }) });
  const options = { timeout: within };
  const reading = runRound(settings, (call) => readOrWrite(call, cellOf(1), retention), options);
  let last: Round<Answer> = reading;
  let result = await unlessAborted(reading.result, signal);
  const before = reading.answers().map((answer) => answer.before);
  const count = 1 + Math.max(0, ...before);
  // Replaces every endpoint's count by this run's, by comparison with the text that the endpoint returned.
  const raiseOne = async (call: Ask, index: number): Promise<Answer> => {
    const snapshot = await reading.calls[index]!.ended;
    if (snapshot.outcome === "error") throw snapshot.cause;
    return keep(call, { keys: [counter], value: snapshot.text }, retention, cellOf(count).value);
  };
  if (result === "granted" && count > 1 && count <= maxAttempts) {
    last = runRound(settings, raiseOne, options);
    result = await unlessAborted(last.result, signal);
  }
  // The result may have been known before every endpoint answered: a rollback must not overtake those requests.
  const rollBack = (perform: (call: Ask) => Promise<Answer>) =>
    undoQuietly(settings, last.calls, unlessRefused(perform)).mostlyDone();
  return {
    state: stateAfterCount(result, count, maxAttempts),
    clear: () => rollBack((call) => end(call, cellOf(count))),
    async undo() {
      if (count > maxAttempts) return;
      // Only the first round has written anything.
      if (last === reading) return rollBack((call) => end(call, cellOf(1)));
      await rollBack((call) => keep(call, cellOf(count), retention, cellOf(count - 1).value));
    },
    votes: () => last.votes(),
  };
}

/** Writes a count of 1 where there is none, and reads it where there is one. */
async function readOrWrite(call: Ask, first: Cell, retention: number): Promise<CountSnapshot> {
  const { other } = await claimOrRead(call, first, retention);
  const before = other === undefined ? 0 : countOf(other);
  if (before === undefined) throw new Error("the value at the key of the count is not a count");
  return { outcome: "granted", text: other ?? first.value, before };
}

/** What the count of a granted run means. */
export type CountState =
  /** A quorum has the count. */
  | { readonly kind: "run" }
  /** No quorum has it. */
  | { readonly kind: "unclear" }
  /** The caller's signal has aborted. */
  | { readonly kind: "aborted" }
  /** So many runs as are allowed began before this one and did not end. */
  | { readonly kind: "dead"; readonly attempts: number };

/** Decides whether a counted run may begin. `count`: the number of such runs, this one included. */
export function stateAfterCount(
  result: RoundResult | undefined,
  count: number,
  maxAttempts: number,
): CountState {
  if (!result) return { kind: "aborted" };
  if (result !== "granted") return { kind: "unclear" };
  return count > maxAttempts ? { kind: "dead", attempts: count - 1 } : { kind: "run" };
}
