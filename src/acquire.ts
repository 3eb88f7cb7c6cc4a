import { pauses } from "./backoff.ts";
import { LockHeldError, QuorumError } from "./errors.ts";
import { emit } from "./events.ts";
import { type Grant, type GrantAnswer, newGrant, raiseFence, takeGrant, withdrawGrant } from "./grant.ts";
import { Lock } from "./lock.ts";
import { type AcquireOptions, handOver, type Settings } from "./options.ts";
import { type Answer, ask, quorumOf, type Round, unlessAborted, type Verdict } from "./quorum.ts";
import type { Spent } from "./register.ts";
import { sleep, stopwatch } from "./runtime.ts";
import { withdraw } from "./withdraw.ts";

const tooLate = "the answers came too late to be relied on";

/** Holds rounds until one grants the lock or the waiting is over; resolves with the last round's outcome. */
export async function contend(
  settings: Settings,
  resources: readonly string[],
  { signal, token: owner = "", deadline = Infinity }: AcquireOptions,
): Promise<Lock | LockHeldError | QuorumError> {
  const { runtime, prefix, onEvent } = settings;
  const elapsed = stopwatch(runtime);
  // Turned into a duration at once: from here on only elapsed time counts.
  const limit = deadline - runtime.now();
  const fenceRetention = settings.fencing ? settings.fenceRetention : 0;
  const next = pauses(settings.backoff, runtime.random);
  const spent: Spent = { requests: 0, commands: 0 };
  const withdrawals = new Set<Promise<void>>();

  for (let attempts = 1; ; attempts += 1) {
    if (signal?.aborted) throw signal.reason;
    // A fresh nonce in every round: HTTP keeps no order, so a withdrawal may overtake the next round's request.
    const grant = newGrant(runtime, { resources, prefix, owner, fenceRetention });
    const { lock, rounds, verdict } = await attempt(settings, grant, signal, limit - elapsed());
    for (const round of rounds) {
      spent.requests += round.spent.requests;
      spent.commands += round.spent.commands;
    }
    if (lock) {
      const fence = lock.fence === undefined ? {} : { fence: lock.fence };
      emit(onEvent, { type: "acquired", resources, attempts, ...fence, elapsed: elapsed(), ...spent });
      if (settings.autoExtend) lock.keepExtending();
      return lock;
    }

    const [take] = rounds;
    const withdrawal = withdraw(settings, take, (call) => withdrawGrant(call, grant)).finally(() =>
      withdrawals.delete(withdrawal),
    );
    withdrawals.add(withdrawal);
    const handedOver = handOver(settings, withdrawal);
    if (signal?.aborted) throw signal.reason;

    const left = Math.min(settings.wait, limit) - elapsed();
    const retryAfter = verdict === "refused" ? freeIn(take) : undefined;
    const refusal =
      verdict === "refused"
        ? new LockHeldError(resources, elapsed(), retryAfter)
        : new QuorumError(
            "acquire",
            resources,
            rounds.at(-1)!.votes(),
            verdict === "late" ? tooLate : undefined,
          );
    const pause = Math.min(next(), left, retryAfter ?? Infinity);
    if (verdict === "refused") {
      const retryIn = left > 0 ? { retryIn: pause } : {};
      emit(onEvent, { type: "contended", resources, attempts, ...retryIn, elapsed: elapsed(), ...spent });
    }
    if (left <= 0) {
      // Nothing else keeps the withdrawals alive once the caller has its answer.
      if (!handedOver) await Promise.all(withdrawals);
      return refusal;
    }
    await sleep(runtime, pause, signal);
  }
}

/** What one attempt came to; `late`: granted, with no validity left. */
interface Attempt {
  readonly lock: Lock | undefined;
  readonly verdict: Verdict | "late" | undefined;
  /** The round that took the lock, and the one that raised its fence if there was need of it. */
  readonly rounds: readonly [Round<GrantAnswer>, ...Round<Answer>[]];
}

/** One round, with the second one that fencing may need. Its verdict is undefined when `signal` ended it. */
async function attempt(
  settings: Settings,
  grant: Grant,
  signal: AbortSignal | undefined,
  limit: number,
): Promise<Attempt> {
  const { runtime, ttl } = settings;
  const clock = Math.floor(runtime.now());
  if (!Number.isSafeInteger(clock)) throw new RangeError(`the clock says ${clock}, which is no time`);
  // An answer after the ttl would be of no use.
  const timeout = Math.min(settings.timeout, ttl);
  const take = ask(settings, timeout, (call) => takeGrant(call, grant, ttl, clock));
  const rounds: [Round<GrantAnswer>, ...Round<Answer>[]] = [take];
  let verdict = await unlessAborted(take, signal);
  let fence: number | undefined;
  if (verdict === "granted" && grant.fenceRetention > 0) {
    const fences = take.answers.flatMap((answer) =>
      answer?.outcome === "granted" ? [answer.fence ?? 0] : [],
    );
    fence = Math.max(...fences);
    // A later holder meets at least one endpoint of this quorum, and there it must find no less than `fence`.
    if (fences.filter((drawn) => drawn === fence).length < quorumOf(settings.endpoints.length)) {
      const raised = fence;
      const raise = ask(settings, timeout, (call) => raiseFence(call, grant, raised));
      rounds.push(raise);
      verdict = await unlessAborted(raise, signal);
      // Refused here means lost between the two rounds, not held from the start.
      if (verdict === "refused") verdict = "no quorum";
    }
  }
  if (verdict !== "granted") return { lock: undefined, verdict, rounds };
  const lock = new Lock(settings, grant, ttl, take.elapsed, { fence, limit, round: take });
  if (lock.remaining() > 0) return { lock, verdict, rounds };
  return { lock: undefined, verdict: "late", rounds };
}

/** ms until so many endpoints may be free that a quorum is possible, as far as they said. */
function freeIn({ answers }: Round<GrantAnswer>): number | undefined {
  const expiries = answers.flatMap((answer) => (answer?.outcome === "held" && answer.retryAfter) || []);
  const missing = quorumOf(answers.length) - (answers.length - expiries.length);
  return expiries.sort((a, b) => a - b)[Math.max(missing, 1) - 1];
}
