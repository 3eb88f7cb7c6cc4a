import {
  isRedlockError,
  QuorumError,
  type RedlockError,
  type RedlockErrorCode,
  secondsHint,
} from "../errors/errors.ts";
import { acquire } from "../lock/acquire.ts";
import { emit } from "../lock/events.ts";
import { isOutage, reportUnguarded } from "../lock/fail-open.ts";
import type { Lock } from "../lock/lock.ts";
import { keepAlive, randomToken, stopwatch } from "../runtime/runtime.ts";
import { InProgressError, LeaseLostError, ResultUnavailableError } from "./errors.ts";
import type { IdempotencyEvent, Report } from "./events.ts";
import { RunProtocol, type RunState } from "./protocol.ts";
import type { UnstoredReason } from "./record.ts";
import { encodeResult } from "./result.ts";
import { type RunRequest, retryAfter } from "./run-request.ts";

/** The argument of a run's handler. */
export interface RunContext {
  readonly key: string;
  /**
   * Identifies this run. A secret, because its owner can end the claim: it is not enumerable, so that no log shows it.
   */
  readonly token: string;
  /** Aborts with {@link LeaseLostError} as soon as another run may have taken over. */
  readonly signal: AbortSignal;
  /** ms of the lease that remain. The library renews it. */
  remaining(): number;
  /** Larger than the fence of every earlier lock and run of the resources. Only with `lock`. */
  readonly fence?: number | undefined;
}

/** The {@link RunContext} of a run with `lock`. */
export interface LockedRunContext extends RunContext {
  readonly fence: number;
}

/** The result of {@link Idempotency.run}. */
export interface Outcome<Value> {
  readonly status: "executed" | "replayed";
  readonly value: Value;
  /**
   * Why the result is not stored. `unserializable`, `too-large`: duplicates get a {@link ResultUnavailableError}.
   * `no-quorum`: the library goes on trying within the lease. If that fails, the next call runs the handler again.
   */
  readonly unstored?: UnstoredReason | "no-quorum";
}

/** The function that {@link Idempotency.run} runs. */
export type Handler<Value, Run extends RunContext = RunContext> = (run: Run) => Promise<Value> | Value;

export async function run<Value>(
  request: RunRequest<Value>,
  handler: Handler<Value>,
): Promise<Outcome<Value>> {
  const { key, settings, lock: resources = [key], signal, deadline, onEvent } = request;
  const elapsed = stopwatch(settings.runtime);
  const report: Report = (type, details) => emit(onEvent, { type, key, ...details, elapsed: elapsed() });
  const protocol = new RunProtocol(request);
  let lock: Lock;
  try {
    lock = await acquire(settings, resources, { signal, deadline }, protocol);
  } catch (error) {
    // Another known run counts more than the outage.
    const isUnknown = protocol.state.kind === "unclear" || protocol.state.kind === "run";
    if (request.failOpen && isUnknown && isOutage(error))
      return runUnguarded(request, handler, { error, elapsed: elapsed() });
    return endWithoutLock(request, protocol.state, { error, report });
  }
  protocol.handlerBegins();
  let value: Value;
  try {
    value = await handler(contextOf(key, lock));
  } catch (error) {
    const released = lock.release();
    if (!keepAlive(settings, released)) await released;
    report("failed", { error });
    throw error;
  }
  return store(request, { protocol, lock, report }, value);
}

const unguarded = new WeakSet<RunContext>();

export function isUnguarded(run: RunContext): boolean {
  return unguarded.has(run);
}

async function runUnguarded<Value>(
  { key, settings, codec, signal, onEvent }: RunRequest<Value>,
  handler: Handler<Value>,
  { error, elapsed }: { readonly error: QuorumError; readonly elapsed: number },
): Promise<Outcome<Value>> {
  const event = { type: "unguarded", key, error, elapsed } as const;
  reportUnguarded({ onEvent, runtime: settings.runtime }, event);
  const nothing = {
    token: randomToken(settings.runtime),
    fence: undefined,
    signal: signal ?? new AbortController().signal,
    remaining: () => Infinity,
  };
  const context = contextOf(key, nothing);
  unguarded.add(context);
  const value = await handler(context);
  return { status: "executed", value: encodeResult(codec, value).value, unstored: "no-quorum" };
}

function contextOf(key: string, lock: Pick<Lock, "token" | "fence" | "signal" | "remaining">): RunContext {
  const context = {
    key,
    token: lock.token,
    fence: lock.fence,
    get signal() {
      return lock.signal;
    },
    remaining: () => lock.remaining(),
  };
  return Object.defineProperty(context, "token", { enumerable: false });
}

/** The effect has happened, so the caller gets the value in any case. */
async function store<Value>(
  { key, settings, codec }: RunRequest<Value>,
  {
    protocol,
    lock,
    report,
  }: { readonly protocol: RunProtocol<Value>; readonly lock: Lock; readonly report: Report },
  value: Value,
): Promise<Outcome<Value>> {
  const result = encodeResult(codec, value);
  const completion = protocol.complete(result);
  // Each endpoint compares, so the local clock no longer matters.
  const isStored = await completion.store(lock);
  if (isStored === false) {
    report("lost");
    const why = "another run took over before the result could be stored";
    throw new LeaseLostError(key, why + secondsHint(settings.ttl));
  }
  // Without a quorum the record stays pending and keeps other runs away.
  const reason = isStored ? completion.unstored : "no-quorum";
  if (!reason) {
    report("executed");
    return { status: "executed", value: result.value };
  }
  report("unstored", { reason, ...("error" in result && { error: result.error }) });
  return { status: "executed", value: reason === "too-large" ? value : result.value, unstored: reason };
}

const endings: { readonly [Code in RedlockErrorCode]?: IdempotencyEvent["type"] } = {
  IN_PROGRESS: "busy",
  LOCK_HELD: "locked",
  FINGERPRINT_MISMATCH: "mismatch",
  DEAD_KEY: "dead",
  RECORD_CORRUPT: "corrupt",
  NO_QUORUM: "unavailable",
};

/** Duplicates, which get no lock, end here too. */
function endWithoutLock<Value>(
  { key, settings, signal, ...request }: RunRequest<Value>,
  state: RunState<Value>,
  { error, report }: { readonly error: unknown; readonly report: Report },
): Outcome<Value> {
  if (!isRedlockError(error) || error === signal?.reason) {
    report("aborted", { error });
    throw error;
  }
  if (state.kind === "replay") {
    const { unstored: reason } = state.record;
    report(reason ? "omitted" : "replayed", { ...(reason && { reason }) });
    if (reason) throw new ResultUnavailableError(key, reason);
    return { status: "replayed", value: state.value as Value };
  }
  let why: RedlockError = error;
  // If endpoints failed, they may be the reason, not other runs.
  if (state.kind === "split-vote" && !error.cause) why = new InProgressError(key, settings.timeout);
  if (state.kind === "busy")
    why = new InProgressError(key, retryAfter({ settings, ...request }, state.record));
  if (state.kind === "stale") why = new QuorumError("begin", [key], state.votes);
  report(endings[why.code] ?? "aborted");
  throw why;
}
