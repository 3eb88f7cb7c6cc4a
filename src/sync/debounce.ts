import { checkInteger, checkNames, checkOptions, checkType } from "../check.ts";
import type { EndpointRequest } from "../endpoints/endpoint-request.ts";
import { LockLostError, QuorumError } from "../errors.ts";
import { checkAcquire, type LockClient, type Settings } from "../lock/options.ts";
import { Validity } from "../lock/validity.ts";
import { pauses } from "../quorum/backoff.ts";
import { rollback } from "../quorum/rollback.ts";
import { type Failure, isHopeless, type Round, runRound, unlessAborted } from "../quorum/round.ts";
import { type CellAnswer, release } from "../redis/cell.ts";
import { keyOf } from "../redis/keys.ts";
import { runScript, unexpectedReply } from "../redis/script.ts";
import { randomToken, runInBackground, sleep, stopwatch } from "../runtime.ts";
import { debounceScript } from "./debounce.lua.ts";
import { checkName, syncSettings, type WaitOptions, waitOptionNames } from "./internal/hold.ts";
import { itemsOf } from "./internal/reply.ts";

/**
 * The window of {@link debounce}, and the options of the call. All calls of a name must use the same `window` and `ttl`.
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

const { autoExtend: _extend, maxHold: _hold, deadline: _deadline, ...usualNames } = waitOptionNames;
const names: Readonly<Record<keyof DebounceOptions, 1>> = { ...usualNames, window: 1 };

/** Whether the routine ran here, and what it returned; `ran: false`: a later call superseded this one. */
export type DebounceOutcome<Value> = { readonly ran: true; readonly value: Value } | { readonly ran: false };

/** Longest window, and longest ttl, in ms: their sum is a ttl that Redis and timers keep. */
const maxWindow = 2 ** 30 - 1;

/**
 * Waits for `window` ms and then runs `routine`, unless a later call of this name, on any replica, superseded it
 * meanwhile. So of a burst of calls the last one runs.
 *
 * A call is later than every other that was announced on a quorum before it began; clocks do not decide. A call that is
 * announced while another finds that it is the last begins a burst of its own, and both run. The process of the last call
 * must survive the window: if it dies, no other call runs instead. While calls never pause for `window`, none runs.
 *
 * @returns `ran: false` when a later call superseded this one; then `routine` is not called
 * @throws QuorumError when too few endpoints answered; the routine did not run
 * @throws LockLostError when the process was frozen for so long that it cannot know whether it was the last
 * @throws TypeError | RangeError when an argument is wrong; nothing was sent
 * @throws what the routine throws, or the reason of the signal that ends the waiting
 * @example
 * ctx.waitUntil(debounce(redlock, `reindex:${shop}`, { window: 2_000 }, () => reindex(shop)));
 */
export async function debounce<Value>(
  redlock: LockClient,
  name: string,
  options: DebounceOptions,
  routine: () => Promise<Value> | Value,
): Promise<DebounceOutcome<Value>> {
  checkName(name);
  checkType("routine", routine, "function");
  // Not as the other synchronizers do: a deadline does not belong to any call of this one.
  const { window, ...given } = checkNames("debounce", checkOptions(options, "window"), names);
  checkInteger("window (ms)", window, 1, maxWindow);
  const { signal } = checkAcquire(given);
  const settings = syncSettings(redlock, given);
  const ttl = window + checkInteger("ttl (ms)", settings.ttl, 10, maxWindow);
  const key = keyOf(settings.prefix, "debounce", name);
  const isLast = await isLastAfterWindow({ settings, name, key, window, ttl, signal });
  return isLast ? { ran: true, value: await routine() } : { ran: false };
}

/** One call of {@link debounce}. */
interface DebounceContext {
  readonly settings: Settings;
  readonly name: string;
  readonly key: string;
  readonly window: number;
  /** How long the announcement is kept, in ms. */
  readonly ttl: number;
  readonly signal: AbortSignal | undefined;
}

/** A call as it is announced. */
interface Announcement {
  /** What is stored in Redis: see {@link textOf}. */
  text: string;
  /** The round that announced it last. */
  round?: Round<CellAnswer>;
}

/** Announces a call as the last one, and once more when its window is over. Removes the announcement if that fails. */
async function isLastAfterWindow(context: DebounceContext): Promise<boolean> {
  const { settings, name, key, window, ttl, signal } = context;
  const { runtime, driftFactor, wait } = settings;
  const token = randomToken(runtime);
  const waited = stopwatch(runtime);
  const remainingWait = () => wait - waited();
  const own: Announcement = { text: textOf(Math.floor(runtime.now()), token) };
  try {
    let announced = await announce(context, own, remainingWait);
    while (!announced.isLast) {
      // A later sequence number is of an earlier call, whatever the clocks say: it was there before this one.
      own.text = textOf(latestSequence(announced.round) + 1, token);
      announced = await announce(context, own, remainingWait);
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
    // The same announcement is the last one, or is not: it can be repeated when an answer is lost.
    const { isLast } = await announce(context, own, () => validity.remaining());
    if (!isLast) return false;
    // Later calls may have come and expired while this process was frozen.
    if (validity.loss) throw validity.loss;
    return true;
  } catch (error) {
    const { text: value, round } = own;
    // It was aborted before it was announced.
    if (!round) throw error;
    // The call before it may be the last one again.
    const rolledBack = rollback(settings, round, (call) => release(call, { keys: [key], value })).done;
    if (!runInBackground(settings, rolledBack) && !signal?.aborted) await rolledBack;
    throw error;
  }
}

/** Announces a call until a quorum has answered whether it is the last, for as long as `remainingMs` allows. */
async function announce(
  { settings, name, key, ttl, signal }: DebounceContext,
  own: Announcement,
  remainingMs: () => number,
): Promise<{ readonly isLast: boolean; readonly round: Round<CellAnswer> }> {
  const { runtime, backoff } = settings;
  const { text } = own;
  for (const nextPause = pauses(backoff, runtime); ; ) {
    if (signal?.aborted) throw signal.reason;
    const round = runRound(settings, (call) => announceOne(call, key, text, ttl));
    own.round = round;
    const result = await unlessAborted(round, signal);
    if (!result) continue;
    if (result !== "unavailable") return { isLast: result === "granted", round };
    const remaining = remainingMs();
    const pause = Math.min(nextPause(), remaining);
    // A clock may be too coarse to show the last part of a ms pass.
    if (pause <= 0 || remaining < 1 || isHopeless(round.votes()))
      throw new QuorumError("debounce", [name], round.votes());
    await sleep(runtime, pause, signal);
  }
}

async function announceOne(
  call: EndpointRequest,
  key: string,
  text: string,
  ttl: number,
): Promise<CellAnswer> {
  const reply = await runScript(call, debounceScript, [key], [text, ttl]);
  const [echo, other] = itemsOf(reply);
  if (echo === text) return { outcome: "granted" };
  if (echo === 0 && sequenceIn(other)) return { outcome: "held", other: String(other) };
  throw unexpectedReply();
}

/** The greatest sequence number that an endpoint returned; 0 where none did. */
function latestSequence({ answers }: Round<CellAnswer>): number {
  const sequenceOf = (answer: CellAnswer | Failure | undefined) =>
    answer && "other" in answer ? sequenceIn(answer.other) : 0;
  return Math.max(...answers.map(sequenceOf));
}

/** A call as it is stored in Redis. The later one is the greater text; the token decides where the sequence is equal. */
function textOf(sequence: number, token: string): string {
  return `d${String(sequence).padStart(16, "0")}${token}`;
}

/** The sequence number of a call, or of what replaces one after a `forceRelease`; 0 where it is neither. */
function sequenceIn(text: unknown): number {
  // Stryker disable next-line OptionalChaining: what it throws then is a malformed reply, as 0 is
  const sequence = Number(/^d(\d{16})[tu][0-9a-f]{32}$/.exec(String(text))?.[1] ?? 0);
  return sequence < Number.MAX_SAFE_INTEGER ? sequence : 0;
}
