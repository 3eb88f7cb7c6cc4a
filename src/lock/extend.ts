import { QuorumError } from "../errors.ts";
import { type Answer, type Round, runRound } from "../quorum/round.ts";
import type { Call, RequestCost } from "../redis/register.ts";
import { stopwatch } from "../runtime.ts";
import type { Settings } from "./options.ts";
import type { Validity } from "./validity.ts";

/**
 * One renewal of something held: a round within the validity that is left, counted from before it was sent.
 * `done` hears of the round as soon as its result is known.
 *
 * @throws the loss, when it is lost, was lost before, or is found to be
 * @throws QuorumError when too few endpoints answered in time; what was valid before stays valid, but for no
 * longer than the ttl asked for
 */
export async function renewOnQuorum(
  settings: Settings,
  validity: Validity,
  ttl: number,
  names: readonly string[],
  cost: RequestCost,
  perform: (call: Call) => Promise<Answer>,
  done?: (round: Round<Answer>) => void,
): Promise<Round<Answer>> {
  if (validity.released) throw validity.lose("it was released");
  if (validity.loss) throw validity.loss;
  // Of a shorter ttl, any endpoint may bring the end forward, whether or not its answer arrives.
  if (validity.budgetOf(ttl) < validity.remaining()) validity.renew(ttl, stopwatch(settings.runtime));
  // No request may outlast the validity: a hang must not hide its end.
  const round = runRound(settings, Math.min(settings.timeout, validity.remaining()), perform, cost);
  const result = await round.result;
  done?.(round);
  if (validity.loss) throw validity.loss;
  if (result === "refused") throw validity.lose("its token is gone from a quorum");
  const late = validity.budgetOf(ttl) <= round.elapsed();
  if (result !== "granted" || late) {
    throw new QuorumError("extend", names, round.votes(), result === "granted");
  }
  validity.renew(ttl, round.elapsed);
  return round;
}
