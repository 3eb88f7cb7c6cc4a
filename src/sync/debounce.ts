import { checkInteger, checkType } from "../check.ts";
import type { Call } from "../endpoints/call.ts";
import { LockLostError, QuorumError } from "../errors.ts";
import { checkAcquire, type Settings } from "../lock/options.ts";
import { Validity } from "../lock/validity.ts";
import { pauses } from "../quorum/backoff.ts";
import { rollback } from "../quorum/rollback.ts";
import { type Round, runRound, unlessAborted } from "../quorum/round.ts";
import { keyOf } from "../redis/keys.ts";
import { type RegisterAnswer, release } from "../redis/register.ts";
import { runScript, type Script, unexpectedReply } from "../redis/script.ts";
import type { Redlock } from "../redlock.ts";
import { randomToken, sleep, stopwatch } from "../runtime.ts";
import { runInBackground } from "../wait-until.ts";
import { checkName, syncSettings, type WaitOptions } from "./internal/hold.ts";

/**
 * Announces a call on one endpoint, unless a later one stands there.
 *
 * KEYS: where the last call stands. ARGV: 1. the call; 2. ttl in ms. Calls are texts of one length, of which the later
 * is the greater.
 *
 * Replies: {the call} when it is the last one there; {0, the later call} when it is not.
 *
 * The key lives at least as long as any call it has seen: whoever asks within its own ttl finds what came after it.
 */
export const announceScript: Script = {
  source: `local found = redis.call("GET", KEYS[1])
if found and found > ARGV[1] then return {0, found} end
redis.call("SET", KEYS[1], ARGV[1], "PX", math.max(tonumber(ARGV[2]), redis.call("PTTL", KEYS[1])))
return {ARGV[1]}`,
  sha: {
    redis: "98ce89f57dc5f6d5994d96c4f90e5b5c688a5456",
    upstash: "e66c471d2ebab6cc08a5c2014a67d95f32fd29b1",
  },
};

/**
 * How long to wait for a later call, and the options of {@link debounce}. `window` and `ttl` have to be the same in all
 * calls of a name.
 */
export interface DebounceOptions extends Omit<WaitOptions, "autoExtend" | "maxHold" | "deadline"> {
  /** ms without a later call after which the routine runs: an integer from 1 to 1 073 741 823 (12 days). */
  readonly window: number;
  /**
   * How long after its window a call may still find that it was the last, in ms: an integer from 10 to 1 073 741 823.
   * Default: the client's. A process that is frozen for longer does not run its routine.
   */
  readonly ttl?: number | undefined;
}

/** Whether the routine ran here, and what it returned; if not, a later call has taken its place. */
export type DebounceOutcome<Value> = { readonly ran: true; readonly value: Value } | { readonly ran: false };

/**
 * Waits for `window` ms and then runs `routine`, unless a later call of this name, on any replica, has taken its place
 * meanwhile. So of a burst of calls the last one runs.
 *
 * A call is later than every other that had been announced on a quorum before it began; clocks do not decide. One that
 * is announced while another finds that it is the last begins a burst of its own, and both run. The process of the last
 * call has to live through the window: if it dies, nobody runs in its place. And while calls never pause for `window`,
 * none runs.
 *
 * @returns `ran: false` when a later call has taken its place; then `routine` is not called
 * @throws QuorumError when too few endpoints answered; the routine did not run
 * @throws LockLostError when the process was frozen for so long that it cannot know whether it was the last
 * @throws what the routine throws, or the reason of the signal that ends the waiting
 * @example
 * ctx.waitUntil(debounce(redlock, `reindex:${shop}`, { window: 2_000 }, () => reindex(shop)));
 */
export async function debounce<Value>(
  redlock: Redlock,
  name: string,
  options: DebounceOptions,
  routine: () => Promise<Value> | Value,
): Promise<DebounceOutcome<Value>> {
  checkName(name);
  checkType("routine", routine, "function");
  const { window, ...given } = options;
  checkInteger("window", window, 1, 2 ** 30 - 1);
  const { signal } = checkAcquire(given);
  const settings = syncSettings(redlock, given);
  const { runtime, driftFactor, prefix, wait } = settings;
  const ttl = window + checkInteger("ttl", settings.ttl, 10, 2 ** 30 - 1);
  const desk: DebounceContext = { settings, name, key: keyOf(prefix, "debounce", name), ttl, signal };

  const token = randomToken(runtime);
  const waited = stopwatch(runtime);
  let text = textOf(Math.floor(runtime.now()), token);
  let last: Round<RegisterAnswer> | undefined;
  const keep = (round: Round<RegisterAnswer>) => {
    last = round;
  };
  try {
    let announced = await announce(desk, text, () => wait - waited(), keep);
    while (!announced.isLast) {
      // Whoever stands there already was before this call, whatever the clocks say.
      const places = announced.round.answers.map((answer) => sequenceIn((answer as RegisterAnswer)?.other));
      text = textOf(Math.max(...places) + 1, token);
      announced = await announce(desk, text, () => wait - waited(), keep);
    }
    const validity = new Validity({
      runtime,
      driftFactor,
      elapsed: announced.round.elapsed,
      ttl,
      limit: Infinity,
      lostError: (why) => new LockLostError([name], why),
      onLost: () => undefined,
    });
    await sleep(runtime, window, signal);
    // Announced once more it is the last, or it is not: that can be repeated when an answer is lost.
    const { isLast } = await announce(desk, text, () => validity.remaining(), keep);
    if (!isLast) return { ran: false };
    // Later calls may have come and gone where it could not see them.
    if (validity.loss) throw validity.loss;
  } catch (error) {
    // The calls before it may be the last again.
    const own = { keys: [desk.key], value: text };
    const rolledBack = rollback(settings, last, (call) => release(call, own)).done;
    if (!runInBackground(settings, rolledBack) && !signal?.aborted) await rolledBack;
    throw error;
  }
  return { ran: true, value: await routine() };
}

/** Where calls of one name are announced, and for how long. */
interface DebounceContext {
  readonly settings: Settings;
  readonly name: string;
  readonly key: string;
  readonly ttl: number;
  readonly signal: AbortSignal | undefined;
}

/** Announces a call until a quorum has answered whether it is the last, for as long as there is time left. */
async function announce(
  { settings, name, key, ttl, signal }: DebounceContext,
  text: string,
  left: () => number,
  keep: (round: Round<RegisterAnswer>) => void,
): Promise<{ isLast: boolean; round: Round<RegisterAnswer> }> {
  const { runtime, timeout, backoff } = settings;
  for (const next = pauses(backoff, runtime); ; ) {
    if (signal?.aborted) throw signal.reason;
    const round = runRound(settings, (call) => announceOne(call, key, text, ttl));
    keep(round);
    const result = await unlessAborted(round, signal);
    if (!result) continue;
    if (result !== "unavailable") return { isLast: result === "granted", round };
    const remaining = left();
    const pause = Math.min(next(), remaining);
    // A clock may be too coarse to see the last part of a ms pass.
    if (pause <= 0 || remaining < 1) throw new QuorumError("debounce", [name], round.votes());
    await sleep(runtime, pause, signal);
  }
}

async function announceOne(call: Call, key: string, text: string, ttl: number): Promise<RegisterAnswer> {
  const reply = await runScript(call, announceScript, [key], [text, ttl]);
  const [echo, other] = Array.isArray(reply) ? reply : [];
  if (echo === text) return { outcome: "granted" };
  if (echo === 0 && sequenceIn(other)) return { outcome: "held", other };
  throw unexpectedReply();
}

/** A call as it stands in Redis; the later one is the greater text. */
function textOf(place: number, token: string): string {
  return `d${String(place).padStart(16, "0")}${token}`;
}

/** The place of a call among others, or of what stands for one that was freed; 0 where there is none. */
function sequenceIn(text: unknown): number {
  const place = Number(/^d(\d{16})[tu][0-9a-f]{32}$/.exec(String(text))?.[1] ?? 0);
  return place < Number.MAX_SAFE_INTEGER ? place : 0;
}
