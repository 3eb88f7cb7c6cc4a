import type { Context, Env, MiddlewareHandler, Next } from "hono";
import { bodyOf, isCut, whole, withUnreadBody } from "../http/body.ts";
import { refuseUncalled } from "../http/mounting.ts";
import { type Delivery, type Locked, type RouteOptions, resolveRules } from "../http/options.ts";
import { routeFor } from "../http/route.ts";
import { type Handled, type HttpAnswer, type IdempotentRun, serve } from "../http/serve.ts";
import type { LockedRunContext } from "../idempotency/index.ts";
import { refuseOther, type UnknownEnv, waitUntilOf, withPreparedHeaders } from "./context.ts";

/** `c.var.idempotency` with `lock`. */
export type LockedRun = IdempotentRun & LockedRunContext;

/**
 * The variables that {@link idempotent} sets. With `lock`: `IdempotencyVariables<LockedRun>`.
 *
 * @example
 * const app = new Hono<{ Variables: IdempotencyVariables }>();
 */
export interface IdempotencyVariables<Run extends IdempotentRun = IdempotentRun> {
  /** Undefined if nothing protects the handler: without a key, or with `failOpen` during an outage. */
  idempotency?: Run;
  /** With a `provider`: the verified delivery. */
  webhook?: Delivery;
}

/** {@link IdempotencyVariables} behind a `provider`. */
export interface WebhookVariables<Run extends IdempotentRun = IdempotentRun>
  extends IdempotencyVariables<Run> {
  idempotency: Run;
  webhook: Delivery;
}

/** Options of {@link idempotent}. Some may be functions of the context. */
export interface IdempotentOptions<
  E extends Env = UnknownEnv,
  Given extends Delivery | undefined = Delivery | undefined,
> extends RouteOptions<[c: Context<E>], Given> {}

/** With a provider, every request that reaches the handler is a verified delivery. */
export interface IdempotentWebhookOptions<E extends Env = UnknownEnv> extends IdempotentOptions<E, Delivery> {
  readonly provider: NonNullable<IdempotentOptions<E>["provider"]>;
}

/**
 * Hono middleware that runs the handler once per key. Later requests get its stored response. The key is the
 * `Idempotency-Key`, or with a `provider` the delivery's id (`c.var.webhook`).
 *
 * Mount it once, in the route, before middleware that reads the body and after middleware that compresses or adds CORS
 * headers. With `app.use`, a route above it answers even unsigned deliveries, and nothing can notice that.
 *
 * @throws TypeError | RangeError an option is wrong
 *
 * @example
 * app.post("/payments", idempotent<Env>({ redlock, scope: (c) => c.var.tenant }), async (c) => {
 *   const payment = await pay(await c.req.json(), { signal: c.var.idempotency?.signal });
 *   return c.json(payment, 201);
 * });
 * app.post("/webhooks/github", idempotent({ redlock, provider: github({ secret }) }), handleEvent);
 */
export function idempotent<E extends Env = UnknownEnv>(
  options: Locked<IdempotentWebhookOptions<E>>,
): MiddlewareHandler<E & { Variables: WebhookVariables<LockedRun> }>;
export function idempotent<E extends Env = UnknownEnv>(
  options: IdempotentWebhookOptions<E>,
): MiddlewareHandler<E & { Variables: WebhookVariables }>;
export function idempotent<E extends Env = UnknownEnv>(
  options: Locked<IdempotentOptions<E>>,
): MiddlewareHandler<E & { Variables: IdempotencyVariables<LockedRun> }>;
export function idempotent<E extends Env = UnknownEnv>(
  options: IdempotentOptions<E>,
): MiddlewareHandler<E & { Variables: IdempotencyVariables }>;
export function idempotent<E extends Env, Given extends Delivery | undefined>(
  options: IdempotentOptions<E, Given>,
  ...more: readonly unknown[]
): MiddlewareHandler {
  if (refuseUncalled("idempotent", more)) return undefined as never;
  const rules = resolveRules("idempotent", options);
  const answer = async (c: Context, next: Next): Promise<Response | undefined> => {
    if (c.finalized) throw new TypeError("the handler has answered already: mount idempotent() before it");
    let isHandled = false;
    // Of this middleware only until the first pause.
    const pattern = c.req.routePath;
    const { status, response } = await serve(rules, {
      // Even for a duplicate, for middleware further out.
      ...(await routeFor(options, [c], (delivery) => c.set("webhook", delivery))),
      request: c.req.raw,
      pattern,
      waitUntil: waitUntilOf(c),
      outer: c.get("idempotency"),
      body: (cap) => requestBody(c, cap),
      handle(run, body) {
        if (body) c.req.raw = withUnreadBody(c.req.raw, body, run?.signal);
        c.set("idempotency", run);
        isHandled = true;
        return handleRoute(c, next);
      },
    });
    if (!isHandled) return withPreparedHeaders(c, response);
    if (response !== c.res) replaceResponse(c, { status, response });
    return undefined;
  };
  return function idempotent(c, next, ...rest: readonly unknown[]) {
    return refuseOther("idempotent", c, rest) ? (undefined as never) : answer(c, next);
  };
}

async function handleRoute(c: Context, next: Next): Promise<Handled> {
  await next();
  // Reading `c.res` would create an empty 200, and that would be stored.
  if (!c.finalized) throw new TypeError("the handler has returned no response");
  // Hono has already made a response of the handler's error.
  return { response: c.res, failed: c.error !== undefined };
}

function replaceResponse(c: Context, { status, response }: HttpAnswer): void {
  if (status === "replayed" || status === "refused") {
    // The browser needs the CORS headers to read the new response.
    for (const [name, value] of c.res.headers) {
      if (/^(access-control-.*|vary)$/.test(name)) response.headers.set(name, value);
    }
  }
  c.res = undefined; // otherwise Hono copies the old response's headers
  c.res = response;
}

const readBefore =
  "the body has been read before idempotent(), and its bytes are gone: mount that further out";

async function requestBody({ req }: Context, cap: number): Promise<Uint8Array | undefined> {
  if (!req.raw.bodyUsed) return bodyOf(req.raw, cap);
  if (!(await keepsBytes(req))) {
    throw new TypeError(readBefore);
  }
  const body = new Uint8Array(await req.arrayBuffer());
  // Text has lost the byte order mark, which is signed.
  if (isCut(req.raw, body)) throw new TypeError(readBefore);
  return body.length > cap ? undefined : whole(req.raw, body);
}

async function keepsBytes(req: Context["req"]): Promise<boolean> {
  // Form data's boundaries would differ. Hono caches JSON as text.
  const [first = ""] = Object.keys(req.bodyCache);
  // Bytes that are not UTF-8 have become U+FFFD.
  if (first === "text") return !(await req.text()).includes("\ufffd");
  return /^(arrayBuffer|blob)$/.test(first);
}
