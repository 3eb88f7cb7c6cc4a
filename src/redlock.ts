import { checkInteger, checkNumber, checkType } from "./check.ts";
import { checkDialect, type Endpoint, type HttpEndpointOptions, httpEndpoint } from "./endpoints/endpoint.ts";
import { endpointsFromEnv } from "./endpoints/env.ts";
import { isUpstashClient, type UpstashClient, upstashEndpoint } from "./endpoints/upstash.ts";
import { LockHeldError, type RedlockError } from "./errors.ts";
import { acquireWithRetry } from "./lock/acquire.ts";
import { type LockJSON, openRequests } from "./lock/handoff.ts";
import { forceRelease, type Inspection, inspect } from "./lock/inspect.ts";
import { Lock } from "./lock/lock.ts";
import {
  type AcquireOptions,
  checkAcquire,
  checkResources,
  type LockOptions,
  resolveSettings,
  type Settings,
} from "./lock/options.ts";
import { type Runtime, stopwatch, systemRuntime, tokenLength } from "./runtime.ts";

/** What a client is made of, and its defaults for every call. */
export interface RedlockOptions extends LockOptions {
  /**
   * The independent Redis databases, 1 or more, in any mix: `{ url, token }`, `@upstash/redis` clients, or any
   * {@link Endpoint}. With n of them ⌊n/2⌋ + 1 must grant; that is not configurable.
   */
  readonly endpoints: readonly (HttpEndpointOptions | UpstashClient | Endpoint)[];
  /** Clocks, timers and randomness; for simulators and tests. Default: the platform's. */
  readonly runtime?: Runtime | undefined;
}

/**
 * A client for distributed locks on Redis databases that are reached over HTTP.
 *
 * The algorithm is Redlock (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/) with an
 * early result, a fresh token in every round and fencing tokens; `docs/algorithm.md` has the reasons.
 *
 * @example
 * const redlock = new Redlock({ endpoints: [{ url, token }] });
 * await redlock.using("invoice:42", { ttl: 10_000 }, async (lock) => {
 *   await pay(42, { signal: lock.signal });
 * });
 */
export class Redlock {
  /** Endpoints, runtime and defaults, checked. Other parts of this package build on them. */
  readonly settings: Settings;
  /** The defaults as they were given. */
  readonly options: LockOptions;

  /**
   * @throws TypeError | RangeError when an option is wrong, there is no endpoint, or two are the same
   */
  constructor({ endpoints, runtime = systemRuntime, ...options }: RedlockOptions) {
    if (!Array.isArray(endpoints) || endpoints.length === 0) {
      throw new TypeError("endpoints must be an array of at least one endpoint");
    }
    const list = endpoints.map(asEndpoint);
    // The same Redis twice is no second opinion: a quorum of it proves nothing.
    const twice = list.find(({ name }, index) => list.findIndex((other) => other.name === name) !== index);
    if (twice) throw new RangeError(`two endpoints are named ${twice.name}; each must be a Redis of its own`);
    this.options = options;
    this.settings = resolveSettings({ endpoints: list, runtime }, options);
  }

  /**
   * A client from environment variables: `UPSTASH_REDIS_REST_URL_1` and `_TOKEN_1`, `_2` … for several
   * databases, else `UPSTASH_REDIS_REST_URL` and `_TOKEN`, else `KV_REST_API_URL` and `_TOKEN`.
   *
   * @param env e.g. `process.env`, or the Worker's `env`
   * @throws TypeError naming the variable that is missing
   */
  static fromEnv(env: object, options: Omit<RedlockOptions, "endpoints"> = {}): Redlock {
    return new Redlock({ ...options, endpoints: endpointsFromEnv(env as Record<string, unknown>) });
  }

  /**
   * Takes the lock, waiting for it if someone else holds it.
   *
   * @param resource one name, or several that are taken all together or not at all
   * @throws LockHeldError when it was still held after `wait`
   * @throws QuorumError when too few endpoints answered usably in the last round
   * @throws the signal's reason when it aborts; what it took, or may yet take, is withdrawn
   */
  async acquire(resource: string | readonly string[], options: AcquireOptions = {}): Promise<Lock> {
    const outcome = await this.#contend(resource, options);
    if (outcome instanceof Lock) return outcome;
    throw outcome;
  }

  /**
   * Takes the lock in one round, or not.
   *
   * @returns null when someone else holds it, or contenders that came at the same moment got a part each
   * @throws QuorumError when that could not be told
   */
  async tryAcquire(resource: string | readonly string[], options: AcquireOptions = {}): Promise<Lock | null> {
    const outcome = await this.#contend(resource, { ...options, wait: 0 });
    if (outcome instanceof Lock) return outcome;
    if (outcome instanceof LockHeldError) return null;
    throw outcome;
  }

  /**
   * Runs `routine` while holding the lock, extends the lock while it runs, and always releases it. The
   * routine's result or error wins over a failed release.
   *
   * @throws LockLostError when the lock was lost before the routine ended, unless the routine itself threw
   * @throws what {@link Redlock.acquire} throws
   */
  using<Result>(
    resource: string | readonly string[],
    routine: (lock: Lock) => Promise<Result> | Result,
  ): Promise<Result>;
  using<Result>(
    resource: string | readonly string[],
    options: AcquireOptions,
    routine: (lock: Lock) => Promise<Result> | Result,
  ): Promise<Result>;
  async using<Result>(
    resource: string | readonly string[],
    ...rest:
      | [(lock: Lock) => Promise<Result> | Result]
      | [AcquireOptions, (lock: Lock) => Promise<Result> | Result]
  ): Promise<Result> {
    const routine = rest[rest.length - 1];
    if (typeof routine !== "function") throw new TypeError("using needs a routine as its last argument");
    const options = rest.length > 1 ? (rest[0] as AcquireOptions) : {};
    const autoExtend = options.autoExtend ?? this.options.autoExtend ?? true;
    const lock = await this.acquire(resource, { ...options, autoExtend });
    try {
      const result = await routine(lock);
      const { signal } = lock;
      if (signal.aborted) throw signal.reason;
      return result;
    } finally {
      await lock[Symbol.asyncDispose]();
    }
  }

  /**
   * Goes on with a lock that another process handed over by {@link Lock.handoff}. Its validity is taken from the wall
   * clock; where the two processes' clocks may differ, call `extend()` first.
   *
   * @throws TypeError | RangeError when `json` is not what `handoff` made, or the giver had other endpoints
   */
  resume(json: LockJSON, options: LockOptions = {}): Lock {
    const { resources, prefix, nonce, owner, ttl, validUntil, fence } = json;
    const settings = resolveSettings(this.settings, this.options, options, { prefix });
    const names = checkResources(resources);
    // A nonce of another length would shift where owners are compared, and anybody's lock could look like ours.
    if (typeof nonce !== "string" || nonce.length !== tokenLength || typeof owner !== "string") {
      throw new TypeError("resume needs what lock.handoff() resolved to");
    }
    checkAcquire({ token: owner || undefined });
    checkType("prefix", prefix, "string");
    checkInteger("ttl", ttl, 10, 2_147_483_647);
    checkNumber("validUntil", validUntil, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
    if (fence !== undefined) checkInteger("fence", fence, 1, Number.MAX_SAFE_INTEGER);
    const open = openRequests(json, settings);
    const fenceRetention = fence === undefined ? 0 : settings.fenceRetention;
    const grant = { resources: names, prefix, nonce, owner, fenceRetention };
    const left = validUntil - settings.runtime.now();
    const elapsed = stopwatch(settings.runtime);
    const lock = new Lock(settings, grant, { ttl, elapsed, fence, limit: Infinity, left, ...open });
    if (settings.autoExtend) lock.keepExtending();
    return lock;
  }

  /**
   * Looks at a resource without touching it.
   *
   * @throws QuorumError when too few endpoints answered to tell
   */
  async inspect(resource: string, options: LockOptions = {}): Promise<Inspection> {
    return inspect(this.#settings(options), checkResources(resource)[0]!);
  }

  /**
   * Takes a resource from whoever holds it. For operators: the holder learns of it at its next extension or
   * verification only, and until then believes in its validity; only fencing protects what it writes.
   *
   * @returns whether there was anything to free
   * @throws QuorumError when too few endpoints answered
   */
  async forceRelease(resource: string, options: LockOptions = {}): Promise<boolean> {
    return forceRelease(this.#settings(options), checkResources(resource)[0]!);
  }

  #settings(options: LockOptions): Settings {
    // The usual call overrides nothing, and need not be checked again.
    if (Object.keys(options).length === 0) return this.settings;
    return resolveSettings(this.settings, this.options, options);
  }

  #contend(resource: string | readonly string[], options: AcquireOptions): Promise<Lock | RedlockError> {
    return acquireWithRetry(this.#settings(options), checkResources(resource), checkAcquire(options));
  }
}

function asEndpoint(given: HttpEndpointOptions | UpstashClient | Endpoint): Endpoint {
  if (isUpstashClient(given)) return upstashEndpoint(given);
  if (typeof (given as Partial<Endpoint> | null)?.send === "function") {
    const { name, dialect } = given as Endpoint;
    checkType("name", name, "string");
    if (!checkDialect(dialect)) throw new TypeError(`endpoint ${name} must say its dialect`);
    return given as Endpoint;
  }
  return httpEndpoint(given as HttpEndpointOptions);
}
