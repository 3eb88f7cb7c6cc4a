import type { Context } from "hono";
import type { WaitUntil } from "../wait-until.ts";

/** A value, or what makes it of the context, for each request. */
export type FromContext<Value> = Value | ((c: Context) => Value | Promise<Value>);

/** The value for this request. */
export function resolved<Value>(value: FromContext<Value>, c: Context): Value | Promise<Value> {
  return typeof value === "function" ? (value as (c: Context) => Value)(c) : value;
}

/** The platform's `waitUntil`, where it has one; Hono throws where it has none. */
export function waitUntilOf(c: Context): WaitUntil | undefined {
  try {
    const { executionCtx } = c;
    return typeof executionCtx.waitUntil === "function" ? executionCtx : undefined;
  } catch {
    return undefined;
  }
}

/** A response with what middleware further out has prepared for whatever is answered. */
export function answered(c: Context, response: Response): Response {
  return c.newResponse(response.body, response);
}
