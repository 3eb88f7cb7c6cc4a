import type { Context, Env, MiddlewareHandler, Next } from "hono";
import { bodyOf, isCut, whole, withUnreadBody } from "../http/body.ts";
import { refuseUncalled } from "../http/mounting.ts";
import { type Delivery, type Locked, type RouteOptions, resolveRules } from "../http/options.ts";
import { routeFor } from "../http/route.ts";
import { type Handled, type HttpAnswer, type IdempotentRun, serve } from "../http/serve.ts";
import type { LockedRunContext } from "../idempotency/index.ts";
import { refuseOther, type UnknownEnv, waitUntilOf, withPreparedHeaders } from "./context.ts";

/** The value of `c.var.idempotency` with `lock`. */
export type LockedRun = IdempotentRun & LockedRunContext;

/**
 * The variables that {@link idempotent} sets. With `lock` they are `IdempotencyVariables<LockedRun>`.
 *
 * @example
 * const app = new Hono<{ Variables: IdempotencyVariables }>();
 */
export interface IdempotencyVariables<Run extends IdempotentRun = IdempotentRun> {
  /** Undefined where nothing protects the handler: without a key, or with `failOpen` and without a store. */
  idempotency?: Run;
  /** With a `provider`: the delivery, once it is verified. Middleware further out sees it for a duplicate, too. */
  webhook?: Delivery;
}

/** {@link IdempotencyVariables} behind a `provider`, for the handlers that a delivery reaches. */
export interface WebhookVariables<Run extends IdempotentRun = IdempotentRun>
  extends IdempotencyVariables<Run> {
  idempotency: Run;
  webhook: Delivery;
}

/** Options of {@link idempotent}. Those that differ between requests may be functions of the context. */
export interface IdempotentOptions<
  E extends Env = UnknownEnv,
  Given extends Delivery | undefined = Delivery | undefined,
> extends RouteOptions<[c: Context<E>], Given> {}

/** {@link IdempotentOptions} with a provider: every request that reaches the handler is a verified delivery. */
export interface IdempotentWebhookOptions<E extends Env = UnknownEnv> extends IdempotentOptions<E, Delivery> {
  readonly provider: NonNullable<IdempotentOptions<E>["provider"]>;
}

/**
 * Hono middleware that handles a request once per key: the handler answers the first request, and later ones get its
 * stored response. The key is the request's `Idempotency-Key`, or, with a `provider`, the id of a webhook's delivery, which
 * is `c.var.webhook` then.
 *
 * Mount it only once per route: a second one with an equal key and scope is an error. Mount it before middleware that reads
 * the body, and after middleware that compresses or adds CORS headers.
 *
 * With `app.use(idempotent(…))`, register the routes below it: Hono runs handlers in their order, so a route above it answers
 * without it, even a delivery that nobody has signed. Nothing can notice that, so mount it in the route, as in the example.
 *
 * @throws TypeError | RangeError at once when an option is wrong
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
      // Set at once, so that middleware further out knows the delivery of a duplicate, too.
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

/** Runs the rest of the route. */
async function handleRoute(c: Context, next: Next): Promise<Handled> {
  await next();
  // Reading `c.res` would create an empty 200, and that would be stored.
  if (!c.finalized) throw new TypeError("the handler has returned no response");
  // Hono has already turned the handler's error into a response, of any status.
  return { response: c.res, failed: c.error !== undefined };
}

/** Replaces the handler's response: by a stored one or a problem, or by itself with a body that can be read. */
function replaceResponse(c: Context, { status, response }: HttpAnswer): void {
  if (status === "replayed" || status === "refused") {
    // Nothing of the handler's response is sent, but the browser needs the CORS headers to read the new one.
    for (const [name, value] of c.res.headers) {
      if (/^(access-control-.*|vary)$/.test(name)) response.headers.set(name, value);
    }
  }
  c.res = undefined; // otherwise Hono copies the headers of the old response to the new one
  c.res = response;
}

const readBefore =
  "the body has been read before idempotent(), and its bytes are gone: mount that further out";

/** The request's body as it arrived, even if middleware further out has read it. */
async function requestBody({ req }: Context, cap: number): Promise<Uint8Array | undefined> {
  if (!req.raw.bodyUsed) return bodyOf(req.raw, cap);
  if (!(await keepsBytes(req))) {
    throw new TypeError(readBefore);
  }
  const body = new Uint8Array(await req.arrayBuffer());
  // Text has no byte order mark, which is signed and in the fingerprint.
  if (isCut(req.raw, body)) throw new TypeError(readBefore);
  return body.length > cap ? undefined : whole(req.raw, body);
}

/** Whether the bytes that arrived can be rebuilt from the body that was read. */
async function keepsBytes(req: Context["req"]): Promise<boolean> {
  // Of form data they cannot: the boundaries between its parts would differ. Hono caches JSON as text.
  const [first = ""] = Object.keys(req.bodyCache);
  // Bytes that are not UTF-8 have become U+FFFD.
  if (first === "text") return !(await req.text()).includes("\ufffd");
  return /^(arrayBuffer|blob)$/.test(first);
}
