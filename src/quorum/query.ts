import type { Ask } from "../endpoints/ask.ts";
import { QuorumError } from "../errors.ts";
import { type Round, type RoundContext, runRound } from "./round.ts";
import { type Answer, quorumOf } from "./tally.ts";

/** What a quorum has answered. */
export interface Answers<Reply extends Answer> {
  readonly round: Round<Reply>;
  /** Without the endpoints that failed. */
  readonly answers: readonly Reply[];
}

/**
 * Asks every endpoint the same question.
 *
 * @param subject what the error says: the action, and the names that it is about
 * @param enough how long to wait. Default: for every endpoint
 * @throws QuorumError when fewer than a quorum answered by then
 */
export async function query<Reply extends Answer>(
  context: RoundContext,
  subject: readonly [action: string, names: readonly string[]],
  ask: (call: Ask) => Promise<Reply>,
  enough: (round: Round<Reply>) => Promise<unknown> = ({ done }) => done,
): Promise<Answers<Reply>> {
  const round = runRound(context, ask);
  await enough(round);
  const answers = round.answers();
  if (answers.length >= quorumOf(context.endpoints.length)) return { round, answers };
  throw new QuorumError(...subject, round.votes());
}
