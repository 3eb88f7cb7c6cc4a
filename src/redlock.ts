import { checkType } from "./check/check.ts";
import { refuseMethods } from "./check/foreign-names.ts";
import type { Endpoint } from "./endpoints/endpoint.ts";
import { asEndpoints, type HttpEndpointOptions } from "./endpoints/http.ts";
import { LockHeldError } from "./errors/errors.ts";
import { acquire, orHeld } from "./lock/acquire.ts";
import { type ClientState, clientStateOf, type LockClient, setClientState } from "./lock/client.ts";
import { isOutage, reportUnguarded } from "./lock/fail-open.ts";
import { lockProtocol } from "./lock/fence.ts";
import type { FencedLock, Lock } from "./lock/lock.ts";
import {
  type AcquireOptions,
  type ClientParts,
  checkAcquireOptions,
  checkLockOptions,
  checkResources,
  checkTryOptions,
  type LockOptions,
  resolveSettings,
  type UsingOptions,
  usingSchema,
} from "./lock/options.ts";

/** Options of {@link Redlock}: its parts, and the defaults of its calls. */
export interface RedlockOptions extends LockOptions {
  /**
   * Independent Redis databases, 1 or more: `{ url, token }`, or any {@link Endpoint}, for example
   * `upstashEndpoint(client)`. Of n, ⌊n/2⌋ + 1 must grant.
   */
  readonly endpoints: readonly (HttpEndpointOptions | Endpoint)[];
  /** For simulators and tests. Default: the platform's. */
  readonly runtime?: ClientParts["runtime"];
}

/** {@link AcquireOptions} of a lock with a fence. */
export type FencedOptions = AcquireOptions & { readonly fencing: true };

/** There is always a lock. */
type Guarded = { readonly failOpen?: false | undefined };

/** The function that {@link Redlock.using} runs. */
export type Routine<Held extends Lock | undefined, Result> = (lock: Held) => Promise<Result> | Result;

/**
 * A client for distributed locks on Redis databases that are reached over HTTP.
 *
 * The algorithm is Redlock (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/) with early
 * results, a fresh nonce in every round and fencing tokens. `docs/internals/algorithm.md` has the reasons.
 *
 * @example
 * const redlock = new Redlock({ endpoints: [{ url, token }] });
 * await redlock.using("invoice:42", { ttl: 10_000 }, async (lock) => {
 *   await pay(42, { signal: lock.signal });
 * });
 */
export class Redlock implements LockClient {
  /**
   * It sends nothing yet.
   *
   * @throws TypeError | RangeError when an option is wrong, there is no endpoint, or two are equal
   */
  constructor(given: RedlockOptions) {
    const { endpoints, runtime, ...options } = Object(given) as RedlockOptions;
    const list = asEndpoints(endpoints, given);
    checkLockOptions(options);
    if (runtime !== undefined) checkType("runtime.now", Object(runtime).now, "function");
    setClientState(this, { settings: resolveSettings({ endpoints: list, runtime }, options), options });
  }

  /**
   * Acquires the lock, waiting while someone else holds it.
   *
   * @param resource one name, or several that are acquired all together or not at all
   * @throws LockHeldError when it was still held after `wait`
   * @throws QuorumError when too few endpoints answered usably in the last round
   * @throws the signal's reason. Acquired locks are rolled back
   */
  acquire(resource: string | readonly string[], options: FencedOptions): Promise<FencedLock>;
  acquire(resource: string | readonly string[], options?: AcquireOptions): Promise<Lock>;
  async acquire(resource: string | readonly string[], options: AcquireOptions = {}): Promise<Lock> {
    checkAcquireOptions(options);
    return acquireOn(clientStateOf(this, "redlock.acquire(…)"), resource, options);
  }

  /**
   * Acquires the lock in one round, or not.
   *
   * @returns null when someone else holds it, or contenders that came at once got a part each
   * @throws QuorumError when that could not be known
   */
  tryAcquire(resource: string | readonly string[], options: FencedOptions): Promise<FencedLock | null>;
  tryAcquire(resource: string | readonly string[], options?: AcquireOptions): Promise<Lock | null>;
  async tryAcquire(resource: string | readonly string[], options: AcquireOptions = {}): Promise<Lock | null> {
    const given = checkTryOptions(checkAcquireOptions(options));
    const client = clientStateOf(this, "redlock.tryAcquire(…)");
    const outcome = await orHeld(acquireOn(client, resource, given));
    return outcome instanceof LockHeldError ? null : outcome;
  }

  /**
   * Runs `routine` while holding the lock, extends the lock while it runs, and always releases it. Await all work in
   * the routine, because the lock is released when the routine's promise settles. If the release fails, you still get
   * the routine's result or error, and the ttl frees the lock.
   *
   * @throws LockLostError when the lock was lost before the routine ended, unless the routine itself threw
   * @throws what {@link Redlock.acquire} throws
   */
  using<Result>(resource: string | readonly string[], routine: Routine<Lock, Result>): Promise<Result>;
  using<Result>(
    resource: string | readonly string[],
    options: FencedOptions & Guarded,
    routine: Routine<FencedLock, Result>,
  ): Promise<Result>;
  using<Result>(
    resource: string | readonly string[],
    options: AcquireOptions & Guarded,
    routine: Routine<Lock, Result>,
  ): Promise<Result>;
  using<Result>(
    resource: string | readonly string[],
    options: UsingOptions & { readonly fencing: true },
    routine: Routine<FencedLock | undefined, Result>,
  ): Promise<Result>;
  using<Result>(
    resource: string | readonly string[],
    options: UsingOptions,
    routine: Routine<Lock | undefined, Result>,
  ): Promise<Result>;
  async using<Result>(
    resource: string | readonly string[],
    ...rest: [Routine<never, Result>] | [UsingOptions, Routine<never, Result>]
  ): Promise<Result> {
    const routine = rest[rest.length - 1] as Routine<Lock | undefined, Result>;
    if (typeof routine !== "function") {
      throw new TypeError("using needs a routine as its last argument: redlock.using(resource, routine)");
    }
    const { failOpen, ...options } = checkAcquireOptions(
      rest.length > 1 ? (rest[0] as UsingOptions) : {},
      usingSchema,
    );
    const { settings, options: defaults } = clientStateOf(this, "redlock.using(…)");
    const autoExtend = options.autoExtend ?? defaults.autoExtend ?? true;
    let lock: Lock;
    try {
      lock = await this.acquire(resource, { ...options, autoExtend });
    } catch (error) {
      if (!failOpen || !isOutage(error)) throw error;
      const { onEvent = settings.onEvent } = options;
      const event = { type: "unguarded", resources: [resource].flat(), error } as const;
      reportUnguarded({ onEvent, runtime: settings.runtime }, event);
      return routine(undefined);
    }
    try {
      const result = await routine(lock);
      const { signal } = lock;
      if (signal.aborted) throw signal.reason;
      return result;
    } finally {
      await lock[Symbol.asyncDispose]();
    }
  }
}

refuseMethods("redlock", Redlock.prototype, {
  lock: "redlock.using, or redlock.acquire",
  disposer: "redlock.using",
  release: "lock.release()",
  extend: "lock.extend(ttl)",
  quit: "that of your client",
  on: "the option onEvent",
});

async function acquireOn(
  { settings, options: defaults }: ClientState,
  resource: string | readonly string[],
  options: AcquireOptions,
): Promise<Lock> {
  // Defaults such as the timeout depend on other options.
  const usesDefaults = Object.keys(options).length === 0;
  const own = usesDefaults ? settings : resolveSettings(settings, defaults, options);
  const resources = checkResources(resource);
  return acquire(own, resources, options, lockProtocol(own, resources, options.note));
}
