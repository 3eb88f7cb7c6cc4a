import { checkInteger, checkNumber, checkType, wrongType } from "../check.ts";
import { QuorumError } from "../errors.ts";
import { emit, newId, type RedlockEvent } from "../events.ts";
import { pauses } from "../quorum/backoff.ts";
import { maxTimerDelay, randomToken, sleep, stopwatch, tokenLength } from "../runtime.ts";
import { type FencedLock, Lock } from "./lock.ts";
import type { LockRequest } from "./lock-request.ts";
import type { LockState } from "./lock-state.ts";
import {
  checkAcquire,
  checkResources,
  type LockClient,
  type LockOptions,
  type Settings,
  settingsOf,
} from "./options.ts";
import { isSplit, TakeOver } from "./take-over.ts";

/** A lock as plain JSON, for another process. It contains the lock's token: treat it as a secret. */
export interface LockJSON {
  readonly resources: readonly string[];
  readonly prefix: string;
  readonly nonce: string;
  /** The nonces of earlier handles, the oldest first: an endpoint that missed a take-over may have one. */
  readonly earlier: readonly string[];
  readonly owner: string;
  readonly ttl: number;
  /** Wall-clock time in ms since 1970 at which the validity ends. */
  readonly validUntil: number;
  readonly fence?: number;
  /** The endpoints, by name: the receiver's client must have the same. */
  readonly endpoints: readonly string[];
  /** Those at which a request that acquires the lock may still be executed. */
  readonly pendingAcquires: readonly string[];
  /** By endpoint: the lowest ttl of an extension that may still be executed there. */
  readonly pendingExtensions: Readonly<Record<string, number>>;
}

const notHandedOver = "resume needs what handoff(lock) resolved to";

/** The {@link LockJSON} of a lock with a fence. */
export interface FencedLockJSON extends LockJSON {
  readonly fence: number;
}

/**
 * Hands a lock over to another process, which goes on with {@link resume}. This handle ends, as if it had been released,
 * but the lock stays held: nothing extends it until it is resumed. Waits for an extension under way.
 *
 * The two processes' wall clocks must agree; where they may not, extend right after resuming.
 *
 * @returns what `resume` needs, as plain JSON. It contains the lock's token: treat it as a secret
 * @throws LockLostError when the lock is lost, released, or handed over already
 *
 * @example
 * await queue.send({ job, lock: await handoff(lock) });
 */
export function handoff(lock: FencedLock): Promise<FencedLockJSON>;
export function handoff(lock: Lock): Promise<LockJSON>;
export async function handoff(lock: Lock): Promise<LockJSON> {
  if (!lock?.parts) throw wrongType("lock", lock, "a Lock, as acquire() returns it");
  const { settings, request, validity, pendingAcquires, openExtensions, takeOver } = lock.parts();
  for (let current: unknown; current !== lock.parts().extension; ) {
    current = lock.parts().extension;
    await current;
  }
  if (validity.released) throw validity.lose("it was released or handed over");
  if (validity.loss) throw validity.loss;
  // In this order: a freeze in between must make it end earlier, not later.
  const validUntil = Math.floor(settings.runtime.now() + validity.remaining());
  lock.abandon();
  const { ttl, fence } = lock;
  const { prefix, nonce, owner, resources } = request;
  const endpoints = settings.endpoints.map(({ name }) => name);
  const pendingExtensions = endpoints.map((name) => [name, openExtensions.lowest(name)] as const);
  return {
    resources,
    prefix,
    nonce,
    earlier: takeOver?.earlierFor(settings) ?? [],
    owner,
    ttl,
    validUntil,
    ...(fence !== undefined && { fence }),
    endpoints,
    pendingAcquires: [...pendingAcquires],
    pendingExtensions: Object.fromEntries(pendingExtensions.filter(([, ttl]) => ttl < Infinity)),
  };
}

/** Options of {@link resume}. */
export interface ResumeOptions extends LockOptions {
  /**
   * Resumes without a request, where nothing may be waited for. Then the lock is taken over by the first extension: until
   * then, two processes that resume it both believe that they hold it. Default false.
   */
  readonly immediate?: boolean | undefined;
}

/**
 * Goes on with a lock that another process handed over by {@link handoff}, for a whole ttl. Of several processes that
 * resume it, because a queue has delivered the message twice, one gets it: a compare-and-set on a quorum, one round, puts
 * a nonce of its own in the place of the one in the message. When no process gets a quorum, each puts the old one back and
 * tries again, for as long as `wait`; when too few endpoints answer, the message can be tried again.
 *
 * A lock with an owner's `token` is resumed without a request: all handles of an owner share the hold.
 *
 * @returns the lock, valid for a whole ttl; with `immediate` or an owner until `validUntil`, by this process's clock
 * @throws LockLostError when another process has resumed it, it was released, or it has expired
 * @throws QuorumError when too few endpoints answered; it may be tried again
 * @throws TypeError | RangeError when `json` is not what `handoff` returned, or its lock has other endpoints
 *
 * @example
 * await using lock = await resume(redlock, message.lock, { autoExtend: true });
 */
export function resume(
  redlock: LockClient,
  json: FencedLockJSON,
  options?: ResumeOptions,
): Promise<FencedLock>;
export function resume(redlock: LockClient, json: LockJSON, options?: ResumeOptions): Promise<Lock>;
export async function resume(
  redlock: LockClient,
  json: LockJSON,
  options: ResumeOptions = {},
): Promise<Lock> {
  const { immediate = false, ...others } = checkType("options", options, "object");
  checkType("immediate", immediate, "boolean");
  let parts = resumedParts(redlock, json, others);
  const { runtime, wait, backoff } = parts.settings;
  const elapsed = stopwatch(runtime);
  const nextPause = pauses(backoff, runtime);
  for (;;) {
    const outcome = await tryToResume(parts, immediate);
    if (outcome instanceof Lock) return outcome;
    const remaining = Math.min(wait - elapsed(), json.validUntil - runtime.now());
    if (!outcome.isSplit || remaining <= 0) throw outcome.error;
    await sleep(runtime, Math.min(nextPause(), remaining));
    // With another nonce: a late request of this attempt must not count for the next one.
    parts = resumedParts(redlock, json, others);
  }
}

/** Why a lock is not resumed, and whether those that resume it may have kept it from each other. */
interface FailedAttempt {
  readonly error: unknown;
  readonly isSplit: boolean;
}

async function tryToResume(
  { settings, request, state }: ResumedParts,
  immediate: boolean,
): Promise<Lock | FailedAttempt> {
  const { onEvent } = settings;
  const { id, takeOver } = state;
  let isHeld = false;
  let extended: RedlockEvent | undefined;
  // What is not held yet has no events; the round that takes it over is reported for its costs, after the beginning.
  const hook =
    onEvent &&
    ((event: RedlockEvent) => {
      if (isHeld) return onEvent(event);
      if (event.type === "extended") extended = event;
    });
  const lock = new Lock({ ...settings, onEvent: hook }, request, state);
  try {
    if (takeOver && !immediate) await lock.extend();
  } catch (error) {
    lock.abandon();
    return undoTakeOver(settings, lock, takeOver!, error);
  }
  isHeld = true;
  lock.activate({ type: "resumed", id, resources: lock.resources, fence: lock.fence });
  if (extended) emit(onEvent, extended);
  return lock;
}

/** After a failed take-over: puts back what was handed over where it may be resumed again, and else releases it. */
async function undoTakeOver(
  settings: Settings,
  { resources, ttl }: Lock,
  takeOver: TakeOver,
  error: unknown,
): Promise<FailedAttempt> {
  const { round } = takeOver;
  // It has expired: nothing was sent.
  if (!round) return { error, isSplit: false };
  // Only all answers show who has it.
  await round.done;
  const isContended = isSplit(round.answers);
  const isUnclear = isContended || error instanceof QuorumError;
  await takeOver.undo(settings, { ttl, putsBack: isUnclear });
  return {
    error: isUnclear ? new QuorumError("resume", resources, round.votes()) : error,
    isSplit: isContended,
  };
}

/** What the handle of a lock that was handed over is made of. */
interface ResumedParts {
  readonly settings: Settings;
  readonly request: LockRequest;
  readonly state: LockState;
}

/** Checks the message, and makes a handle's parts of it, with a nonce of its own. */
function resumedParts(redlock: LockClient, json: LockJSON, options: LockOptions): ResumedParts {
  // Not shown: it contains the lock's token.
  if (!Array.isArray(json?.resources)) throw new TypeError(`${notHandedOver}, as an object and not as text`);
  const { resources, prefix, nonce, earlier, owner, ttl, validUntil, fence } = json;
  const settings = settingsOf(redlock, options, { prefix });
  const names = checkResources(resources);
  // A nonce of another length would shift where owners are compared, and anybody's lock could look like ours.
  const isNonce = (text: unknown) => typeof text === "string" && text.length === tokenLength;
  const areNonces = Array.isArray(earlier) && [nonce, ...earlier].every(isNonce);
  if (!areNonces || typeof owner !== "string") throw new TypeError(notHandedOver);
  checkAcquire({ token: owner || undefined });
  checkType("prefix", prefix, "string");
  checkInteger("ttl (ms)", ttl, 10, maxTimerDelay);
  checkNumber("validUntil", validUntil, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  if (fence !== undefined) checkInteger("fence", fence, 1, Number.MAX_SAFE_INTEGER);
  const { pendingAcquires, pendingExtensions } = checkOpenRequests(json, settings);
  const { runtime } = settings;
  // Stryker disable next-line ConditionalExpression: without a fence no counter is ever named
  const fenceRetention = fence === undefined ? 0 : settings.fenceRetention;
  const held = { resources: names, prefix, nonce, earlier, owner, fenceRetention };
  const request = owner ? held : { ...held, nonce: randomToken(runtime), earlier: [...earlier, nonce] };
  // An owner's handles share the nonce, and the unanswered extensions of others compare the owner alone.
  const own = owner ? { pendingExtensions } : { takeOver: new TakeOver(request) };
  const remaining = validUntil - runtime.now();
  const elapsed = stopwatch(runtime);
  const state = { id: newId(), ttl, elapsed, fence, limit: Infinity, remaining, pendingAcquires, ...own };
  return { settings, request, state };
}

/** The requests of the other process that may still be executed, checked: at endpoints that this client has, too. */
function checkOpenRequests(
  json: LockJSON,
  { endpoints }: Settings,
): Pick<LockJSON, "pendingAcquires" | "pendingExtensions"> {
  const { endpoints: given, pendingAcquires, pendingExtensions } = json;
  const names = endpoints.map(({ name }) => name);
  if (!Array.isArray(given) || [...given].sort().join("\n") !== [...names].sort().join("\n")) {
    throw new RangeError(
      `resume needs the endpoints that acquired the lock: ${String(given)}; this client has ${names}`,
    );
  }
  const isKnown = (name: unknown) => names.includes(name as string);
  if (!Array.isArray(pendingAcquires) || !pendingAcquires.every(isKnown)) {
    throw new TypeError("pendingAcquires must be an array of names of endpoints");
  }
  for (const [name, least] of Object.entries(checkType("pendingExtensions", pendingExtensions, "object"))) {
    if (!isKnown(name)) throw new RangeError("pendingExtensions must name endpoints");
    checkInteger(`pendingExtensions of ${name}`, least, 10, maxTimerDelay);
  }
  return { pendingAcquires, pendingExtensions };
}
