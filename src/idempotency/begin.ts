import type { Call, Round } from "../quorum/round.ts";
import { isVeto, quorumOf, type RoundResult } from "../quorum/tally.ts";
import type { CellAnswer } from "../redis/cell.ts";
import { classifyRecords, type RecordState } from "./record.ts";

// The begin: one round that claims the key, or reads what another run has stored there. Nothing is read with a plain
// GET, which a lagging replica may answer: every decision of a run comes from a command that writes or compares.

/** The meaning of the answers to a begin. */
export type BeginState =
  /** A quorum granted the claim, and no complete run is known. */
  | { readonly kind: "run" }
  /** Too few endpoints answered. */
  | { readonly kind: "unclear" }
  /** Another holder has a lock that the run needs. */
  | { readonly kind: "locked" }
  | RecordState;

/** The part of a call that shows what its endpoint has stored. */
type BeginCall = Pick<Call<CellAnswer>, "answer">;

/**
 * The claim of a run: with another fingerprint a record belongs to another call. `isAlone`: no lock is claimed with the key.
 */
interface Begun {
  readonly fingerprint: string;
  readonly isAlone: boolean;
}

/** Decides a round of begins. It waits for every endpoint if later answers may change it. */
export async function stateOfBegin(round: Round<CellAnswer>, begun: Begun): Promise<BeginState> {
  const result = await round.result;
  const state = classifyBegin(round.calls, result, begun);
  const { kind } = state;
  const isKnown = kind === "busy" || kind === "mismatch" || (kind === "replay" && state.decided);
  if (result === "granted" || isKnown) return state;
  await round.done;
  return classifyBegin(round.calls, result, begun);
}

/** The record that a begin has found in the place of its own. */
export function recordFound({ answer }: BeginCall): string | undefined {
  return answer?.outcome === "held" && answer.blockedBy === undefined ? answer.other : undefined;
}

/** The meaning of the answers so far. */
export function classifyBegin(
  calls: readonly BeginCall[],
  result: RoundResult,
  { fingerprint, isAlone }: Begun,
): BeginState {
  const { length: count } = calls;
  const others = calls.flatMap((call) => recordFound(call) ?? []);
  const state = classifyRecords(others, fingerprint, count);
  if (result === "granted") {
    // A quorum is ours, but the effect of a run that could complete on a minority only has happened nevertheless.
    const isComplete = state.kind === "replay" || (state.kind === "mismatch" && state.complete);
    return isComplete ? state : { kind: "run" };
  }
  if (state.kind !== "split-vote") return state;
  // With locks, it may be a lock or a counter that is not a string: the endpoints' error names the keys.
  if (isAlone && isVeto(calls.filter(isWrongType).length, count)) return { kind: "corrupt" };
  const locked = calls.filter(({ answer }) => answer?.outcome === "held" && answer.blockedBy !== undefined);
  if (isVeto(locked.length, count)) return { kind: "locked" };
  // From so few answers nobody can have a quorum. With more, contenders may have kept it from each other.
  const answered = calls.filter(({ answer }) => answer && answer.outcome !== "error").length;
  return result === "unavailable" && answered < quorumOf(count) ? { kind: "unclear" } : state;
}

/** Whether an endpoint says that the value at the key is not a string, but a list, a hash or the like. */
function isWrongType({ answer }: BeginCall): boolean {
  return answer?.outcome === "error" && answer.cause.message.includes("WRONGTYPE");
}
