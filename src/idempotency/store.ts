import type { Settings } from "../options.ts";
import { type Answer, ask, quorumOf, type Round, type Verdict } from "../quorum.ts";
import { type Call, drop, replace, takeOrRead } from "../register.ts";
import { type Judgement, judge } from "./record.ts";

// The steps of a run, each one command per endpoint. Nothing is read with a plain GET, which a lagging replica
// may answer: every decision comes from a command that writes or compares.

/** What an endpoint said to a begin or a complete: with the other record, when one stands there. */
export type RecordAnswer = Answer & { readonly other?: string };

/** What a round of begins came to. */
export type Begin =
  | { readonly kind: "run" }
  /** Granted, with nothing left of the lease; or too few answers to tell. */
  | { readonly kind: "unclear" }
  | Judgement;

/** Asks every endpoint to begin a run. */
export function askBegin(settings: Settings, key: string, own: string): Round<RecordAnswer> {
  const lease = settings.ttl;
  return ask(settings, Math.min(settings.timeout, lease), async (call) => {
    const standing = await takeOrRead(call, key, own, lease);
    // Our own record is there already: an earlier execution whose reply was lost.
    return standing === own ? { outcome: "granted" } : { outcome: "held", other: String(standing) };
  });
}

/** What a round of begins means. Hears every endpoint out where the first answers do not settle it. */
export async function judgeBegin(
  round: Round<RecordAnswer>,
  verdict: Verdict,
  fingerprint: string,
): Promise<Begin> {
  const quorum = quorumOf(round.answers.length);
  let found = judge(othersOf(round), fingerprint, quorum);
  if (verdict === "granted") {
    // A quorum is ours, but a run that could not complete on one may have happened nevertheless.
    return found.kind === "replay" || (found.kind === "mismatch" && found.complete) ? found : { kind: "run" };
  }
  if (found.kind === "split" || found.kind === "corrupt") {
    await round.done;
    found = judge(othersOf(round), fingerprint, quorum);
  }
  return verdict === "no quorum" && found.kind === "split" ? { kind: "unclear" } : found;
}

/** Renews the lease of a run on one endpoint. */
export async function renewOne(call: Call, key: string, own: string, lease: number): Promise<Answer> {
  return { outcome: (await replace(call, key, own, own, lease)) ? "granted" : "lost" };
}

/**
 * Completes a run on one endpoint. A record that has lapsed untaken is completed too: the effect has happened,
 * and nobody else has begun. Another run's record is never touched.
 */
export async function completeOne(
  call: Call,
  key: string,
  own: string,
  complete: string,
  retention: number,
): Promise<RecordAnswer> {
  if (await replace(call, key, own, complete, retention)) return { outcome: "granted" };
  const standing = await takeOrRead(call, key, complete, retention);
  if (standing === complete) return { outcome: "granted" };
  if (standing !== own) return { outcome: "lost", other: String(standing) };
  // A begin that was held up has arrived in between.
  return { outcome: (await replace(call, key, own, complete, retention)) ? "granted" : "lost" };
}

/** Takes a run's pending record away on one endpoint, and nothing but it. */
export async function failOne(call: Call, key: string, own: string): Promise<Answer> {
  return { outcome: (await drop(call, key, own)) ? "granted" : "lost" };
}

/** Puts the record of a run that is complete in the place of our own pending one. */
export async function repairOne(
  call: Call,
  key: string,
  own: string,
  complete: string,
  retention: number,
): Promise<Answer> {
  return { outcome: (await replace(call, key, own, complete, retention)) ? "granted" : "lost" };
}

function othersOf({ answers }: Round<RecordAnswer>): string[] {
  return answers.flatMap((answer) => (answer && "other" in answer ? [answer.other ?? ""] : []));
}
