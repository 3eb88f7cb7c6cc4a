import type { Call, Round } from "../quorum/round.ts";
import { isVeto, quorumOf, type RoundResult } from "../quorum/tally.ts";
import type { CellAnswer } from "../redis/cell.ts";
import { classifyRecords, type RecordState } from "./record.ts";

// Nothing is read with a plain GET, because a lagging replica may answer it. Every decision comes from a command that
// writes or compares.

/** What the answers to a claim mean. */
export type BeginState =
  /** A quorum granted the claim, and no run is complete. */
  | { readonly kind: "run" }
  /** Too few endpoints answered. */
  | { readonly kind: "unclear" }
  /** Another holder has a lock that the run needs. */
  | { readonly kind: "locked" }
  | RecordState;

type BeginCall = Pick<Call<CellAnswer>, "answer">;

/** `isAlone`: the claim has no locks. */
interface Begun {
  readonly fingerprint: string;
  readonly isAlone: boolean;
}

/** Waits for every endpoint if later answers may change the decision. */
export async function stateOfBegin(round: Round<CellAnswer>, begun: Begun): Promise<BeginState> {
  const result = await round.result;
  const state = classifyBegin(round.calls, result, begun);
  const { kind } = state;
  const isKnown = kind === "busy" || kind === "mismatch" || (kind === "replay" && state.decided);
  if (result === "granted" || isKnown) return state;
  await round.done;
  return classifyBegin(round.calls, result, begun);
}

/** The record that stood in the way. */
export function recordFound({ answer }: BeginCall): string | undefined {
  return answer?.outcome === "held" && answer.blockedBy === undefined ? answer.other : undefined;
}

export function classifyBegin(
  calls: readonly BeginCall[],
  result: RoundResult,
  { fingerprint, isAlone }: Begun,
): BeginState {
  const { length: count } = calls;
  const others = calls.flatMap((call) => recordFound(call) ?? []);
  const state = classifyRecords(others, fingerprint, count);
  if (result === "granted") {
    // A quorum is ours, but a run that completed on a minority has had its effect.
    const isComplete = state.kind === "replay" || (state.kind === "mismatch" && state.complete);
    return isComplete ? state : { kind: "run" };
  }
  if (state.kind !== "split-vote") return state;
  // With locks, the key of another type may be a lock's or a counter's. Then the endpoint's error names it.
  if (isAlone && isVeto(calls.filter(isWrongType).length, count)) return { kind: "corrupt" };
  const locked = calls.filter(({ answer }) => answer?.outcome === "held" && answer.blockedBy !== undefined);
  if (isVeto(locked.length, count)) return { kind: "locked" };
  // So few endpoints give nobody a quorum. With more of them, contenders may have kept it from each other.
  const answered = calls.filter(({ answer }) => answer && answer.outcome !== "error").length;
  return result === "unavailable" && answered < quorumOf(count) ? { kind: "unclear" } : state;
}

/** Whether the value at the key is a list, a hash or the like. */
function isWrongType({ answer }: BeginCall): boolean {
  return answer?.outcome === "error" && answer.cause.message.includes("WRONGTYPE");
}
