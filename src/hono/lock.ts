import type { Context, Env, MiddlewareHandler, Next } from "hono";
import { checkOptions, later, type Schema, typed, wrongType } from "../check/check.ts";
import { refuseUncalled } from "../http/mounting.ts";
import { checkClient } from "../http/options.ts";
import { problem, problemOf, problemResponse } from "../http/problem.ts";
import { valueFor } from "../http/route.ts";
import { warn } from "../http/warn.ts";
import { clientStateOf } from "../lock/client.ts";
import { isOutage, reportUnguarded } from "../lock/fail-open.ts";
import type { FencedLock, Lock } from "../lock/lock.ts";
import { type ClientParts, type LockOptions, lockSchema, resolveSettings } from "../lock/options.ts";
import type { Redlock } from "../redlock.ts";
import {
  type FromContext,
  refuseOther,
  type UnknownEnv,
  waitUntilOf,
  withPreparedHeaders,
} from "./context.ts";

/**
 * The variables that {@link lock} sets. With `fencing: true`: `LockVariables<FencedLock>`.
 *
 * @example
 * const app = new Hono<{ Variables: LockVariables }>();
 */
export interface LockVariables<Held extends Lock | undefined = Lock> {
  lock: Held;
}

/** Options of {@link lock}. Some may be functions of the context. */
export interface LockRouteOptions<E extends Env = UnknownEnv> extends LockOptions {
  readonly redlock: FromContext<Redlock, E>;
  /** One name, or several that are acquired all together or not at all. */
  readonly resource: FromContext<string | readonly string[], E>;
  /** Extends the lock while the handler runs, for at most `maxHold`. Default: the client's, or true. */
  readonly autoExtend?: boolean | undefined;
  /** When the platform stops the code, in ms since 1970. Bounds lock and waiting. Default: none. */
  readonly deadline?: FromContext<number, E> | undefined;
  /** Runs the route without a lock if too few endpoints answer. Default false: 503. */
  readonly failOpen?: boolean | undefined;
}

type Guarded = { readonly failOpen?: false | undefined };

/** {@link LockRouteOptions} with a fence. */
export type FencedLockRouteOptions<E extends Env = UnknownEnv> = LockRouteOptions<E> & {
  readonly fencing: true;
};

const schema: Schema<LockRouteOptions> = {
  ...lockSchema,
  redlock: (_, redlock) => checkClient(redlock),
  resource(name, resource: unknown) {
    if (/^(string|function)$/.test(typeof resource) || Array.isArray(resource)) return;
    throw wrongType(name, resource, "a name, several, or (c) => name");
  },
  deadline: later,
  failOpen: typed("boolean"),
};

const remedy = "In Hono: app.post(path, lock({ redlock, resource }), handler); elsewhere: redlock.using()";

/**
 * Hono middleware that holds a lock, `c.var.lock`, while the rest of the route handles the request. It answers 423 if
 * another holder has the lock, and 503 if too few endpoints answer. If a handler outlives its lock, `c.var.lock.signal`
 * aborts, but its response is still sent. A streamed body is sent after the release.
 *
 * @throws TypeError | RangeError an option is wrong
 *
 * @example
 * app.post("/accounts/:id/close", lock({ redlock, resource: (c) => `account:${c.req.param("id")}` }), async (c) => {
 *   await close(c.req.param("id"), { signal: c.var.lock.signal });
 *   return c.body(null, 204);
 * });
 */
export function lock<E extends Env = UnknownEnv>(
  options: FencedLockRouteOptions<E> & Guarded,
): MiddlewareHandler<E & { Variables: LockVariables<FencedLock> }>;
export function lock<E extends Env = UnknownEnv>(
  options: LockRouteOptions<E> & Guarded,
): MiddlewareHandler<E & { Variables: LockVariables }>;
export function lock<E extends Env = UnknownEnv>(
  options: LockRouteOptions<E>,
): MiddlewareHandler<E & { Variables: LockVariables<Lock | undefined> }>;
export function lock<E extends Env>(
  options: LockRouteOptions<E>,
  ...more: readonly unknown[]
): MiddlewareHandler {
  if (refuseUncalled("lock", more, remedy)) return undefined as never;
  checkOptions("lock", options as unknown as LockRouteOptions, schema, { required: ["redlock", "resource"] });
  const { redlock, resource, deadline, failOpen, ...given } = options;
  resolveSettings({} as ClientParts, given);

  const acquire = async (
    client: Redlock,
    c: Context,
    resources: string | readonly string[],
  ): Promise<Lock> => {
    const { options: defaults } = clientStateOf(client);
    return client.acquire(resources, {
      ...given,
      autoExtend: given.autoExtend ?? defaults.autoExtend ?? true,
      waitUntil: given.waitUntil ?? waitUntilOf(c),
      deadline: await valueFor(deadline, c),
      signal: c.req.raw.signal,
    });
  };

  const hold = async (c: Context, next: Next): Promise<Response | undefined> => {
    const client = await valueFor(redlock, c);
    const { signal } = c.req.raw;
    let resources: string | readonly string[] = [];
    let held: Lock;
    try {
      resources = await valueFor(resource, c);
      held = await acquire(client, c, resources);
    } catch (error) {
      const aborted = signal?.aborted && error === signal.reason ? problem("ABORTED") : undefined;
      const refusal = problemOf(error) ?? aborted;
      if (!refusal) throw error;
      const { settings, options: defaults } = clientStateOf(client);
      if (failOpen && isOutage(error)) {
        const event = { type: "unguarded", resources: [resources].flat(), error } as const;
        reportUnguarded({ onEvent: given.onEvent ?? defaults.onEvent, runtime: settings.runtime }, event);
        await next();
        return undefined;
      }
      const event = { type: "refused", ...refusal, key: undefined, error } as const;
      if (!(given.onEvent ?? defaults.onEvent)) warn(settings.runtime, event, false);
      return withPreparedHeaders(c, problemResponse(refusal));
    }
    c.set("lock", held);
    try {
      await next();
    } finally {
      await held[Symbol.asyncDispose]();
    }
    return undefined;
  };
  return function lock(c, next, ...rest: readonly unknown[]) {
    return refuseOther("lock", c, rest, remedy) ? (undefined as never) : hold(c, next);
  };
}
