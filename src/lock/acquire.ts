import { LockHeldError, QuorumError, type RedlockError } from "../errors.ts";
import { emit } from "../events.ts";
import { pauses } from "../quorum/backoff.ts";
import { withdraw } from "../quorum/rollback.ts";
import { ask, quorumOf, type Round, unlessAborted, type Verdict } from "../quorum/round.ts";
import {
  type Call,
  drop,
  type Register,
  type RegisterAnswer,
  raise,
  type Spent,
  take,
} from "../redis/register.ts";
import { sleep, stopwatch } from "../runtime.ts";
import { type Custody, Lock } from "./lock.ts";
import {
  counterTtl,
  type Grant,
  newGrant,
  takenRegister,
  tombstoneRetention,
  withdrawnRegister,
} from "./lock-request.ts";
import { type AcquireOptions, handOver, type Settings, timeUntil } from "./options.ts";

/** Rules by which something else than a plain lock is contended for; what is left out is as for a lock. */
export interface Contest extends Custody {
  /** Keys at which the next round is to take it. */
  places?(): readonly string[];
  /** Takes it on one endpoint. */
  take?(call: Call, register: Register, ttl: number): Promise<RegisterAnswer>;
  /** Of the round's places those at which it was granted. */
  taken?(round: Round<RegisterAnswer>): readonly string[];
  /**
   * What a round in vain means: `wait`: the next follows after the backoff's pause, or after so many ms; `again`: at
   * once, even after `wait`; an error: no other does.
   */
  judge(round: Round<RegisterAnswer>, outlook: Outlook): "again" | "wait" | number | RedlockError;
}

/** What is known after a round in vain. */
export interface Outlook {
  /** Others hold it, as far as that is shown. */
  readonly held: boolean;
  /** ms until it may be free, where the endpoints told so. */
  readonly retryAfter: number | undefined;
  /** ms that are left to wait. */
  readonly left: number;
  /** ms that the waiting has taken. */
  readonly waited: number;
}

/** No clock of use says more, in ms since 1970: the year 144 683, half way to where integers end. */
const latestTime = 2 ** 52;

/** Holds rounds until one grants the lock or the waiting is over; resolves with the last round's outcome. */
export async function contend(
  settings: Settings,
  resources: readonly string[],
  { signal, token: owner = "", deadline = Infinity }: AcquireOptions,
  contest?: Contest,
): Promise<Lock | RedlockError> {
  const { runtime, prefix, onEvent } = settings;
  const elapsed = stopwatch(runtime);
  // Turned into a duration at once: from here on only elapsed time counts.
  const limit = timeUntil(deadline, runtime);
  const fenceRetention = settings.fencing ? settings.fenceRetention : 0;
  const next = pauses(settings.backoff, runtime);
  const spent: Spent = { requests: 0, commands: 0 };
  const withdrawals = new Set<Promise<void>>();
  let waits = true;
  const withdrawing = { ...settings, goesOn: () => waits && !signal?.aborted };

  for (let attempts = 1; ; attempts += 1) {
    if (signal?.aborted) throw signal.reason;
    // A fresh nonce in every round: HTTP keeps no order, so a withdrawal may overtake the next round's request.
    const grant = newGrant(runtime, {
      resources,
      prefix,
      owner,
      fenceRetention,
      places: contest?.places?.(),
    });
    // The last round hears every endpoint out: it tells contention from an outage.
    const isLast = Math.min(settings.wait, limit) - elapsed() <= settings.timeout;
    const { lock, verdict, round, last } = await attempt(
      settings,
      grant,
      signal,
      limit - elapsed(),
      spent,
      !isLast,
      contest,
    );
    const progress = { resources, attempts, elapsed: elapsed(), ...spent };
    if (lock) {
      emit(onEvent, { type: "acquired", ...progress, fence: lock.fence });
      if (settings.autoExtend) lock.keepExtending();
      return lock;
    }

    const register = withdrawnRegister(grant);
    const giveBack = contest?.drop ?? drop;
    const withdrawal = withdraw(withdrawing, round, (call) =>
      giveBack(call, register, tombstoneRetention),
    ).done;
    withdrawals.add(withdrawal);
    void withdrawal.then(() => withdrawals.delete(withdrawal));
    const handedOver = handOver(settings, withdrawal);
    if (signal?.aborted) throw signal.reason;

    const left = Math.min(settings.wait, limit) - elapsed();
    const held = verdict === "refused";
    const retryAfter = held ? freeIn(round) : undefined;
    const judged = contest?.judge(round, { held, retryAfter, left, waited: elapsed() }) ?? "wait";
    const own = typeof judged === "number" ? judged : undefined;
    // A clock may be too coarse to see the last part of a ms pass.
    const most = Math.min(Math.max(left, 1), retryAfter ?? Infinity);
    const pause = judged === "again" ? 0 : Math.min(own ?? next(round.elapsed()), most);
    const goesOn = judged === "again" || (!(judged instanceof Error) && left > 0);
    if (held) emit(onEvent, { type: "contended", ...progress, retryIn: goesOn ? pause : undefined });
    if (!goesOn) {
      waits = false;
      // Nothing else keeps the withdrawals alive once the caller has its answer.
      if (!handedOver) await Promise.all(withdrawals);
      if (judged instanceof Error) return judged;
      // A clock may have ended the waiting behind a round that was cut short: by now more may be known.
      if (held || isRefused(round)) return new LockHeldError(resources, elapsed(), retryAfter);
      return new QuorumError("acquire", resources, last.votes(), verdict === "granted");
    }
    await sleep(runtime, pause, signal);
  }
}

/** What one attempt came to. Without a lock, `granted` means that it came too late. */
interface Attempt {
  readonly lock?: Lock;
  /** Undefined when the caller's signal ended it. */
  readonly verdict: Verdict | undefined;
  readonly round: Round<RegisterAnswer>;
  /** The round that decided it: `round`, or the one that was to raise the fence. */
  readonly last: Round<RegisterAnswer>;
}

async function attempt(
  settings: Settings,
  asked: Grant,
  signal: AbortSignal | undefined,
  limit: number,
  spent: Spent,
  cutsShort: boolean,
  contest: Contest | undefined,
): Promise<Attempt> {
  const { endpoints, runtime, ttl } = settings;
  const least = Math.floor(runtime.now());
  // Counters would follow a clock up to where integers end, and nobody could draw a fence any more.
  if (!(Math.abs(least) < latestTime)) throw new RangeError(`the clock says ${least}, which is no time`);
  // An answer after the ttl would be of no use.
  const timeout = Math.min(settings.timeout, ttl);
  const register = takenRegister(asked);
  const retention = asked.fenceRetention && counterTtl(asked, ttl);
  const round = ask(
    settings,
    timeout,
    (call) => contest?.take?.(call, register, ttl) ?? take(call, register, ttl, { least, retention }),
    spent,
    cutsShort,
  );
  let last = round;
  let verdict = await unlessAborted(round, signal);
  let fence: number | undefined;
  if (verdict === "granted" && retention > 0) {
    const fences = round.answers.flatMap((answer) => (answer as RegisterAnswer)?.fence ?? []);
    const highest = Math.max(...fences);
    fence = highest;
    // A later holder meets at least one endpoint of this quorum, and must find no less than the fence there.
    if (fences.filter((drawn) => drawn === highest).length < quorumOf(endpoints.length)) {
      last = ask(settings, timeout, (call) => raise(call, register, { least: highest, retention }), spent);
      verdict = await unlessAborted(last, signal);
      // Refused here means lost between the two rounds, not held from the start.
      if (verdict === "refused") verdict = "no quorum";
    }
  }
  if (verdict === "granted") {
    const grant = contest?.taken ? { ...asked, places: contest.taken(round) } : asked;
    const lock = new Lock(settings, grant, {
      ttl,
      elapsed: round.elapsed,
      fence,
      limit,
      round,
      custody: contest,
    });
    if (lock.remaining() > 0) return { lock, verdict, round, last };
  }
  return { verdict, round, last };
}

function isRefused({ answers }: Round<RegisterAnswer>): boolean {
  const refusals = answers.filter((answer) => answer?.outcome === "held");
  return refusals.length > answers.length - quorumOf(answers.length);
}

/** ms until so many endpoints may be free that a quorum is possible, as far as they said. */
function freeIn({ answers }: Round<RegisterAnswer>): number | undefined {
  const held = answers.flatMap((answer) => (answer?.outcome === "held" ? [answer.retryAfter ?? 0] : []));
  const missing = quorumOf(answers.length) - (answers.length - held.length);
  const expiry = held.sort((a, b) => a - b)[missing - 1] ?? 0;
  return expiry > 0 ? expiry : undefined;
}
