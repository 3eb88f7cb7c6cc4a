import type { Context, Env } from "hono";
import { refuseMount } from "../http/mounting.ts";
import type { PerRequest } from "../http/options.ts";
import type { Exchange } from "../http/serve.ts";

/** Give the route's Env, as in `idempotent<Env>({ … })`. */
// biome-ignore lint/suspicious/noEmptyInterface: its name appears in the compiler's message about `c.env.TENANT` without an Env
export interface NoEnvGiven {}

/** The Env if none is given. */
export interface UnknownEnv {
  Bindings: NoEnvGiven;
  Variables: NoEnvGiven;
}

/** A value, or a function of the context. You may have to give its Env, as in `idempotent<Env>({ … })`. */
export type FromContext<Value, E extends Env = UnknownEnv> = PerRequest<Value, [c: Context<E>]>;

/**
 * Returns true if it has refused the request.
 *
 * @param rest the arguments behind `next`, where Express and Fastify take errors
 */
export function refuseOther(
  what: string,
  c: Context,
  [callback]: readonly unknown[],
  remedy?: string,
): boolean {
  if (c?.req?.raw) return false;
  refuseMount(`${what} got no context of Hono`, callback, remedy);
  return true;
}

/** Hono throws if there is none. */
export function waitUntilOf(c: Context): Exchange["waitUntil"] {
  try {
    const { executionCtx } = c;
    return typeof executionCtx.waitUntil === "function" ? executionCtx : undefined;
  } catch {
    return undefined;
  }
}

/** As middleware further out has prepared them. */
export function withPreparedHeaders(c: Context, response: Response): Response {
  return c.newResponse(response.body, response);
}
