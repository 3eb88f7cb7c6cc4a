import type { Ask } from "../endpoints/ask.ts";
import { QuorumError } from "../errors/errors.ts";
import { type Round, type RoundContext, runRound } from "./round.ts";
import { type Answer, quorumOf } from "./tally.ts";

/**
 * @param enough how long to wait. Default: for every endpoint
 * @throws QuorumError when fewer than a quorum answered by then
 */
export async function query<Reply extends Answer>(
  context: RoundContext,
  subject: readonly [action: string, names: readonly string[]],
  ask: (call: Ask) => Promise<Reply>,
  enough: (round: Round<Reply>) => Promise<unknown> = ({ done }) => done,
): Promise<Round<Reply>> {
  const round = runRound(context, ask);
  await enough(round);
  if (round.answers().length >= quorumOf(context.endpoints.length)) return round;
  throw new QuorumError(...subject, round.votes());
}
