import type { Call } from "../../endpoints/call.ts";
import { QuorumError } from "../../errors.ts";
import { type Settings, timeUntil } from "../../lock/options.ts";
import { pauses } from "../../quorum/backoff.ts";
import { type Round, runRound, unlessAborted } from "../../quorum/round.ts";
import { type Answer, quorumOf, type RoundResult } from "../../quorum/tally.ts";
import { runScript, type Script, unexpectedReply } from "../../redis/script.ts";
import { randomToken, sleep, stopwatch } from "../../runtime.ts";
import { runInBackground } from "../../wait-until.ts";
import { ArrivalsMissingError, LimitMismatchError } from "../errors.ts";
import type { WaitOptions } from "./hold.ts";

// Who has arrived, by generation. Within a generation arrivals are a set that only grows, so requests may be lost,
// late or executed twice; and an endpoint never goes back to an earlier generation. That a generation is complete is
// told by the next one: whoever saw it brings the next to a quorum before telling anybody, so that all who ask later
// find it there, as in the read of a register by H. Attiya, A. Bar-Noy, D. Dolev, "Sharing Memory Robustly in
// Message-Passing Systems", 1995.

/**
 * Moves one endpoint to a generation, adds an arrival to it, or looks.
 *
 * KEYS: a hash with the generation (`g`), how many have to arrive (`n`), and a longer field for each that did.
 *
 * ARGV: 1. a nonce; 2. the generation, or nothing: only looks; 3. how many have to arrive; 4. ttl in ms; 5. the field of
 * the arrival, or nothing.
 *
 * Of two generations the later is the greater text. An endpoint moves to a later one only, where it begins with no
 * arrivals. One that an operator reset has no number yet.
 *
 * Replies: {nonce, its generation or nothing, the fields of those that arrived in it}; {nonce, "n", how many have to
 * arrive}: it is used with another number.
 *
 * No request shortens the ttl; one that changes nothing leaves it alone until half of it is over.
 */
export const arrivalScript: Script = {
  source: `local nonce, to, count, ttl, id = unpack(ARGV)
local all, found, ids = redis.call("HGETALL", KEYS[1]), {}, {}
for i = 1, #all, 2 do
  found[all[i]] = all[i + 1]
  if #all[i] > 1 then ids[#ids + 1] = all[i] end
end
if (found.n or count) ~= count then return {nonce, "n", tonumber(found.n)} end
local at = found.g or ""
if to ~= "" and to >= at then
  local left, added = redis.call("PTTL", KEYS[1]), {}
  if to > at then
    redis.call("DEL", KEYS[1])
    at, found, ids, added = to, {}, {}, {"g", to}
  end
  if not found.n then added[#added + 1], added[#added + 2] = "n", count end
  if id ~= "" and not found[id] then
    ids[#ids + 1], added[#added + 1], added[#added + 2] = id, id, 1
  end
  if added[1] then redis.call("HSET", KEYS[1], unpack(added)) end
  if added[1] or left < ttl / 2 then redis.call("PEXPIRE", KEYS[1], math.max(ttl, left)) end
end
return {nonce, at, ids}`,
  sha: {
    redis: "32f6ba92fd023ed6b6c7f0e760d6bfda867db68e",
    upstash: "a32a8bdfd14673cadeb4992e1387fac075a09211",
  },
};

/** Where arrivals are kept. */
export interface ArrivalSet {
  readonly settings: Settings;
  readonly name: string;
  readonly key: string;
  /** How many have to arrive. */
  readonly count: number;
}

/** What endpoints are asked: to move to a generation, and to add an arrival to it; of neither: what they have. */
export interface ArrivalQuery {
  readonly to?: string;
  readonly id?: string;
}

/** What a round has shown. */
export interface ArrivalSnapshot {
  readonly result: RoundResult;
  /** The latest generation that any endpoint is at; empty: none is at any. */
  readonly latest: string;
  /** A quorum is at it. */
  readonly isDecided: boolean;
  /** Those that arrived in it, as far as any endpoint knows. */
  readonly ids: ReadonlySet<string>;
  /** All that answered said the same. */
  readonly alike: boolean;
}

/** Options of those that arrive or wait: nothing is held, so nothing is extended. */
export type ArrivalOptions = Omit<WaitOptions, "autoExtend" | "maxHold" | "driftFactor">;

/** The ttl where none is given: 24 hours. */
export const defaultTtl = 86_400_000;

/**
 * Asks round after round until there is an answer or the waiting is over. A question that follows from what was seen
 * is asked at once, the same one again after a pause.
 *
 * @param next the answer, or what to ask next
 * @throws ArrivalsMissingError when the waiting is over, and QuorumError when too few endpoints answered by then
 */
export async function pollArrivals<Value>(
  roll: ArrivalSet,
  { signal, deadline = Infinity }: Pick<ArrivalOptions, "signal" | "deadline">,
  first: ArrivalQuery,
  next: (snapshot: ArrivalSnapshot, asked: ArrivalQuery) => ArrivalQuery | { readonly value: Value },
): Promise<Value> {
  const { settings, name, count } = roll;
  const { runtime, timeout, backoff } = settings;
  const elapsed = stopwatch(runtime);
  const limit = Math.min(settings.wait, timeUntil(deadline, runtime));
  const nextPause = pauses(backoff, runtime);
  let asked = first;
  for (;;) {
    if (signal?.aborted) throw signal.reason;
    const round = runRound(settings, (call) => queryEndpoint(call, roll, asked));
    runInBackground(settings, round.done);
    const result = await unlessAborted(round, signal);
    if (!result) continue;
    const snapshot = snapshotOf(roll, round, result);
    const then = next(snapshot, asked);
    if ("value" in then) return then.value;
    const follows = then.to !== asked.to || then.id !== asked.id;
    asked = then;
    const left = limit - elapsed();
    // What has begun is brought to its end even after the waiting, but not for ever.
    if (follows && left > -5 * timeout) continue;
    // A clock may be too coarse to see the last part of a ms pass.
    const pause = Math.min(nextPause(), Math.max(left, 1));
    if (pause <= 0 || left <= 0) {
      if (result === "unavailable") throw new QuorumError("watch", [name], round.votes());
      throw new ArrivalsMissingError(name, count, snapshot.ids.size, elapsed());
    }
    await sleep(runtime, pause, signal);
  }
}

/** One endpoint's answer. */
interface ArrivalAnswer extends Answer {
  readonly at: string;
  readonly ids: readonly string[];
  /** Another number than the one asked with, which is in use there. */
  readonly inUse?: number;
}

async function queryEndpoint(
  call: Call,
  { settings, key, count }: ArrivalSet,
  { to = "", id }: ArrivalQuery,
): Promise<ArrivalAnswer> {
  const nonce = randomToken(settings.runtime);
  // Begins with a letter, so that nobody on the way takes it for a number.
  const field = id === undefined ? "" : `i${id}`;
  const reply = await runScript(call, arrivalScript, [key], [nonce, to, count, settings.ttl, field]);
  const [echo, at, ids] = Array.isArray(reply) && reply.length === 3 ? reply : [];
  if (echo === nonce && at === "n" && Number.isSafeInteger(ids) && ids !== count) {
    return { outcome: "held", at: "", ids: [], inUse: ids };
  }
  // It cannot stay at an earlier generation, nor be without an arrival that it was given.
  const isSane = /^(g\w+)?$/.test(at) && at >= to && Array.isArray(ids);
  if (echo !== nonce || !isSane || (at === to && field && !ids.includes(field))) {
    throw unexpectedReply();
  }
  return { outcome: !to || at === to ? "granted" : "held", at, ids };
}

function snapshotOf(
  { settings, name, count }: ArrivalSet,
  round: Round<ArrivalAnswer>,
  result: RoundResult,
): ArrivalSnapshot {
  const total = settings.endpoints.length;
  const answers = round.answers.filter(
    (answer): answer is ArrivalAnswer => !!answer && answer.outcome !== "error",
  );
  // By so many that no quorum is left. Of fewer, it may be they that heard of a wrong number first.
  const others = answers.flatMap(({ inUse = [] }) => inUse);
  if (others.length > total - quorumOf(total)) {
    throw new LimitMismatchError(name, count, others[0]!);
  }
  let latest = "";
  for (const { at } of answers) if (at > latest) latest = at;
  const there = answers.filter(({ at }) => at === latest);
  const ids = new Set(there.flatMap((answer) => answer.ids));
  const alike = answers.every(({ at, ids: { length } }) => at === latest && length === ids.size);
  return { result, latest, isDecided: there.length >= quorumOf(total), ids, alike };
}
