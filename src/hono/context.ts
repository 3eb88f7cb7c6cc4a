import type { Context, Env } from "hono";
import type { Exchange } from "../http/serve.ts";

/** The Env of Hono's `Context` where none is given: bindings and variables have any name. */
export type UntypedEnv = Context extends Context<infer Default> ? Default : never;

/**
 * A value, or a function that returns it for each request. The function's context has the route's Env where that is
 * given, as in `idempotent<Env>({ … })` or `(c: Context<Env>) => …`.
 */
export type FromContext<Value, E extends Env = UntypedEnv> =
  | Value
  | ((c: Context<E>) => Value | Promise<Value>);

/** The value for this request. */
export function valueFor<Value, E extends Env>(
  value: FromContext<Value, E>,
  c: Context,
): Value | Promise<Value> {
  // No option's own value is a function.
  return typeof value === "function" ? (value as (c: Context) => Value | Promise<Value>)(c) : value;
}

/** The platform's `waitUntil`, where it has one; Hono throws where it has none. */
export function waitUntilOf(c: Context): Exchange["waitUntil"] {
  try {
    const { executionCtx } = c;
    return typeof executionCtx.waitUntil === "function" ? executionCtx : undefined;
  } catch {
    return undefined;
  }
}

/** Adds the headers that middleware further out has prepared for every response. */
export function withPreparedHeaders(c: Context, response: Response): Response {
  return c.newResponse(response.body, response);
}
