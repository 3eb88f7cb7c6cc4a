import { QuorumError } from "../errors.ts";
import { type Perform, type Round, runRound } from "../quorum/round.ts";
import type { Answer } from "../quorum/tally.ts";
import { stopwatch } from "../runtime.ts";
import type { Settings } from "./options.ts";
import type { Validity } from "./validity.ts";

/** One extension of something held. */
export interface Extension {
  readonly ttl: number;
  /** The resources, for the error. */
  readonly names: readonly string[];
  /** Extends on one endpoint. */
  readonly perform: Perform<Answer>;
}

/**
 * Extends on a quorum, within the validity that remains. The new validity counts from before the requests were sent.
 *
 * @throws the loss, when it is lost, was lost before, or is found to be lost
 * @throws QuorumError when too few endpoints answered in time; the earlier validity stays, but for no longer than the
 * requested ttl
 */
export async function extendOnQuorum(
  settings: Settings,
  validity: Validity,
  { ttl, names, perform }: Extension,
): Promise<Round<Answer>> {
  if (validity.released) throw validity.lose("it was released");
  if (validity.loss) throw validity.loss;
  // A shorter ttl counts at once: any endpoint may execute it, also where its answer does not arrive.
  if (validity.budgetOf(ttl) < validity.remaining()) validity.extend(ttl, stopwatch(settings.runtime));
  // No request may outlast the validity: a hanging request must not hide its end.
  const round = runRound(settings, perform, { timeout: validity.remaining() });
  const result = await round.result;
  if (validity.loss) throw validity.loss;
  if (result === "refused") throw validity.lose("no quorum has its token any more");
  // This cannot be too late: the validity was at most this ttl's when the requests were sent, and has not ended.
  if (result !== "granted") throw new QuorumError("extend", names, round.votes(), { ttl });
  validity.extend(ttl, round.elapsed);
  return round;
}
