import type { Call, Round } from "../quorum/round.ts";
import { isVeto, quorumOf, type RoundResult } from "../quorum/tally.ts";
import type { CellAnswer } from "../redis/cell.ts";
import { classifyRecords, type RecordState } from "./record.ts";

// Nothing is read with a plain GET, which a lagging replica may answer, but by commands that write or compare.

export type BeginState =
  /** A quorum granted the claim, and no run is complete. */
  | { readonly kind: "run" }
  /** Too few endpoints answered. */
  | { readonly kind: "unclear" }
  /** Another holder has the run's lock. */
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
    // A run that completed on a minority has had its effect.
    const isComplete = state.kind === "replay" || (state.kind === "mismatch" && state.complete);
    return isComplete ? state : { kind: "run" };
  }
  if (state.kind !== "split-vote") return state;
  // With locks, it may be a lock's or a counter's key, which the endpoint's error names.
  if (isAlone && isVeto(calls.filter(isWrongType).length, count)) return { kind: "corrupt" };
  const locked = calls.filter(({ answer }) => answer?.outcome === "held" && answer.blockedBy !== undefined);
  if (isVeto(locked.length, count)) return { kind: "locked" };
  // Too few for anybody's quorum. With more, contenders may have kept it from each other.
  const answered = calls.filter(({ answer }) => answer && answer.outcome !== "error").length;
  return result === "unavailable" && answered < quorumOf(count) ? { kind: "unclear" } : state;
}

/** A list, a hash or the like. */
function isWrongType({ answer }: BeginCall): boolean {
  return answer?.outcome === "error" && answer.cause.message.includes("WRONGTYPE");
}
