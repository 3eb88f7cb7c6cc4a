import type { Settings } from "../options.ts";
import { ask, quorumOf, type Round, type Verdict } from "../quorum.ts";
import { type Call, type Register, type RegisterAnswer, renew, type Spent, takeOrRead } from "../register.ts";
import { type Judgement, judge } from "./record.ts";

// The steps of a run, each one command per endpoint. Nothing is read with a plain GET, which a lagging replica
// may answer: every decision comes from a command that writes or compares.

/** What a round of begins came to. */
export type Begin =
  | { readonly kind: "run" }
  /** Granted, with nothing left of the lease; or too few answers to tell. */
  | { readonly kind: "unclear" }
  | Judgement;

/** Asks every endpoint to begin a run: `own` is its key with the pending record. */
export function askBegin(
  settings: Settings,
  own: Register,
  spent: Spent,
  patience: number,
): Round<RegisterAnswer> {
  const { ttl: lease, timeout } = settings;
  return ask(settings, Math.min(timeout, lease), (call) => takeOrRead(call, own, lease), spent, patience);
}

/** What a round of begins means. Hears every endpoint out where the first answers do not settle it. */
export async function judgeBegin(
  round: Round<RegisterAnswer>,
  verdict: Verdict,
  fingerprint: string,
): Promise<Begin> {
  const { length: count } = round.answers;
  let found = judge(othersOf(round), fingerprint, count);
  if (verdict === "granted") {
    // A quorum is ours, but a run that could not complete on one may have happened nevertheless.
    return found.kind === "replay" || (found.kind === "mismatch" && found.complete) ? found : { kind: "run" };
  }
  if (found.kind === "split" || found.kind === "corrupt" || (found.kind === "replay" && !found.decided)) {
    await round.done;
    found = judge(othersOf(round), fingerprint, count);
  }
  // Of so few answers nobody could have had a quorum; of more, contenders may have kept it from each other.
  const answered = round.answers.filter((answer) => answer && answer.outcome !== "error").length;
  const unclear = verdict === "no quorum" && found.kind === "split" && answered < quorumOf(count);
  return unclear ? { kind: "unclear" } : found;
}

/**
 * Completes a run on one endpoint. A record that has lapsed untaken is completed too: the effect has happened,
 * and nobody else has begun. Another run's record is never touched.
 */
export async function completeOne(
  call: Call,
  own: Register,
  complete: string,
  retention: number,
): Promise<RegisterAnswer> {
  const completed = await renew(call, own, retention, complete);
  if (completed.outcome === "granted") return completed;
  const taken = await takeOrRead(call, { ...own, value: complete }, retention);
  // A begin that was held up has arrived in between.
  if (taken.other === own.value) return renew(call, own, retention, complete);
  return taken.outcome === "granted" ? taken : { ...taken, outcome: "lost" };
}

function othersOf({ answers }: Round<RegisterAnswer>): string[] {
  return answers.flatMap((answer) => (answer?.outcome === "held" ? [answer.other ?? ""] : []));
}
