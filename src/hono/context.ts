import type { Context, Env } from "hono";
import { refuseMount } from "../http/mounting.ts";
import type { PerRequest } from "../http/options.ts";
import type { Exchange } from "../http/serve.ts";

/** No bindings and no variables are known: give the route's Env, as in `idempotent<Env>({ … })`. */
// biome-ignore lint/suspicious/noEmptyInterface: its name appears in the compiler's message about `c.env.TENANT` without an Env
export interface NoEnvGiven {}

/** The Env of a callback's context where none is given. */
export interface UnknownEnv {
  Bindings: NoEnvGiven;
  Variables: NoEnvGiven;
}

/**
 * A value, or a function that returns it for each request. The function's context has the route's Env. Where that cannot
 * be inferred, it must be given, as in `idempotent<Env>({ … })` or `(c: Context<Env>) => …`.
 */
export type FromContext<Value, E extends Env = UnknownEnv> = PerRequest<Value, [c: Context<E>]>;

/**
 * Refuses the request of another framework.
 *
 * @param rest the arguments behind `next`: Express and Fastify take errors there
 * @returns whether it has refused it
 * @throws TypeError where there are none
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

/** The platform's `waitUntil`, if it has one. Hono throws if it has none. */
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
