import type { MiddlewareHandler } from "hono";
import { checkNames, checkType } from "../check.ts";
import { checkClient } from "../http/options.ts";
import { problem, problemOf, problemResponse } from "../http/problem.ts";
import type { Lock } from "../lock/lock.ts";
import { type LockOptions, resolveSettings } from "../lock/options.ts";
import type { Redlock } from "../redlock.ts";
import { systemRuntime } from "../runtime.ts";
import { answered, type FromContext, resolved, waitUntilOf } from "./context.ts";

/** What `lock()` adds to the context. */
export interface LockVariables {
  lock: Lock;
}

/** Options of {@link lock}: those of a lock, and what differs between requests. */
export interface LockRouteOptions extends LockOptions {
  readonly redlock: FromContext<Redlock>;
  /** What is locked: one name, or several that are taken all together or not at all. */
  readonly resource: FromContext<string | readonly string[]>;
  /** What is answered when it is still held after `wait`. Default 423. */
  readonly status?: 423 | 409 | undefined;
  /** Extends the lock while the handler runs, `maxHold` at most. Default: the client's, or true. */
  readonly autoExtend?: boolean | undefined;
  /** Wall-clock time in ms since 1970 at which the platform stops the code; bounds lock and waiting. */
  readonly deadline?: FromContext<number> | undefined;
}

// As a record, so that the compiler notices when one is missing.
const names: Readonly<Record<keyof LockRouteOptions, 1>> = {
  redlock: 1,
  resource: 1,
  status: 1,
  deadline: 1,
  ttl: 1,
  wait: 1,
  timeout: 1,
  driftFactor: 1,
  backoff: 1,
  fencing: 1,
  fenceRetention: 1,
  prefix: 1,
  waitUntil: 1,
  autoExtend: 1,
  maxHold: 1,
  onEvent: 1,
};

/**
 * Hono middleware that holds a lock while what stands behind it handles the request: it is `c.var.lock` there, and
 * released when the handler is done, also when it throws. Held by someone else: 423 with `Retry-After`; too few
 * endpoints: 503. A handler that outlives its lock is told by `c.var.lock.signal`; its response is sent as it is,
 * so what must not happen twice compares `c.var.lock.fence`. A streamed body is sent after the release.
 *
 * @throws TypeError | RangeError at once when an option is wrong
 *
 * @example
 * app.post("/accounts/:id/close", lock({ redlock, resource: (c) => `account:${c.req.param("id")}` }), async (c) => {
 *   await close(c.req.param("id"), { signal: c.var.lock.signal });
 *   return c.body(null, 204);
 * });
 */
export function lock(options: LockRouteOptions): MiddlewareHandler<{ Variables: LockVariables }> {
  const { redlock, resource, status = 423, deadline, ...given } = checkType("options", options, "object");
  checkNames("lock", options, names);
  checkClient(redlock);
  if (typeof resource !== "string" && typeof resource !== "function")
    checkType("resource", resource, "object");
  if (status !== 423 && status !== 409) throw new RangeError(`status must be 423 or 409, got ${status}`);
  resolveSettings({ endpoints: [], runtime: systemRuntime }, given);

  return async function lock(c, next) {
    const client = await resolved(redlock, c);
    const { signal } = c.req.raw;
    let held: Lock;
    try {
      held = await client.acquire(await resolved(resource, c), {
        ...given,
        autoExtend: given.autoExtend ?? client.options.autoExtend ?? true,
        waitUntil: given.waitUntil ?? waitUntilOf(c) ?? client.options.waitUntil,
        deadline: await resolved(deadline, c),
        signal,
      });
    } catch (error) {
      const gone = signal?.aborted && error === signal.reason ? problem("ABORTED") : undefined;
      const refusal = problemOf(error) ?? gone;
      if (!refusal) throw error;
      return answered(c, problemResponse(refusal.code === "LOCK_HELD" ? { ...refusal, status } : refusal));
    }
    c.set("lock", held);
    try {
      await next();
    } finally {
      await held[Symbol.asyncDispose]();
    }
  };
}
