import type { Context, Env, MiddlewareHandler, Next } from "hono";
import { checkType } from "../check.ts";
import { bodyOf, withUnreadBody } from "../http/body.ts";
import { type Delivery, lockFor, scopeFor, valueFor } from "../http/delivery.ts";
import {
  checkClient,
  checkProvider,
  type HttpOptions,
  type HttpRules,
  type Locked,
  resolveRules,
} from "../http/options.ts";
import { type Exchange, type HttpAnswer, type IdempotentRun, serve } from "../http/serve.ts";
import type { LockedRunContext } from "../idempotency/index.ts";
import { checkResources } from "../lock/options.ts";
import {
  type FromContext,
  type FromDelivery,
  type UnknownEnv,
  waitUntilOf,
  withPreparedHeaders,
} from "./context.ts";

/** The value of `c.var.idempotency` with `lock`. */
export type LockedRun = IdempotentRun & LockedRunContext;

/**
 * The variables that {@link idempotent} sets; `IdempotencyVariables<LockedRun>` with `lock`.
 *
 * @example
 * const app = new Hono<{ Variables: IdempotencyVariables }>();
 */
export interface IdempotencyVariables<Run extends IdempotentRun = IdempotentRun> {
  /** Undefined where nothing protects the handler: without a key, or with `failOpen` and without a store. */
  idempotency?: Run;
  /** With a `provider`: the delivery, once it is verified; also for a duplicate, and then for middleware further out. */
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
> extends HttpRules {
  readonly redlock: FromContext<HttpOptions["redlock"], E>;
  /** The sender of webhooks: the ids of its deliveries are the keys. Only genuine deliveries reach Redis. */
  readonly provider?: FromContext<NonNullable<HttpOptions["provider"]>, E> | undefined;
  /**
   * The owner of the keys: tenant, account, user; one name or several. Without it, any client that knows a key and its
   * request gets the response. A webhook's scope begins with the provider's name, and what the provider adds. A function
   * also gets the verified delivery; its body has been read from the request.
   */
  readonly scope?: FromDelivery<string | readonly string[], E, Given> | undefined;
  /**
   * Locks these resources while the handler runs, in the same requests: one name or several, or a function of the context
   * and the verified delivery. `c.var.idempotency` has a fence. A lock that is held is waited for, for `wait` at most; then
   * the answer is that of a request under way. Without a key the handler runs without the lock. Default: none.
   */
  readonly lock?: FromDelivery<string | readonly string[], E, Given> | undefined;
  /** Wall-clock time in ms since 1970 at which the platform stops the code; bounds lease and waiting. Default: none. */
  readonly deadline?: FromContext<number, E> | undefined;
}

/** {@link IdempotentOptions} with a provider: every request that reaches the handler is a verified delivery. */
export interface IdempotentWebhookOptions<E extends Env = UnknownEnv> extends IdempotentOptions<E, Delivery> {
  readonly provider: FromContext<NonNullable<HttpOptions["provider"]>, E>;
}

/**
 * Hono middleware that handles a request once per key: the handler answers the first request, and later ones get its
 * stored response. The key is the request's `Idempotency-Key`, or, with a `provider`, the id of a webhook's delivery, which
 * is `c.var.webhook` then.
 *
 * Mount it only once per route: a second one with the same key and scope is an error. Mount it before middleware that reads
 * the body, and after middleware that compresses or adds CORS headers.
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
): MiddlewareHandler {
  const { redlock, provider, scope, lock, deadline } = checkType("options", options, "object");
  const rules = resolveRules("idempotent", options, provider !== undefined);
  checkClient(redlock);
  if (provider !== undefined) checkProvider(provider);
  if (lock !== undefined && typeof lock !== "function") checkResources(lock, "lock");

  return async function idempotent(c, next) {
    if (c.finalized) throw new TypeError("the handler has answered already: mount idempotent() before it");
    const outer: IdempotentRun | undefined = c.get("idempotency");
    let handled: { readonly run: IdempotentRun | undefined } | undefined;
    const { status, response, refusal } = await serve(rules, {
      request: c.req.raw,
      redlock: await valueFor(redlock, c),
      provider: await providerFor(provider, c),
      deadline: await valueFor(deadline, c),
      waitUntil: waitUntilOf(c),
      async admitted(delivery) {
        // Here, so that middleware further out knows the delivery of a duplicate, too.
        if (delivery) c.set("webhook", delivery);
        const given = delivery as Given;
        return { scope: await scopeFor(scope, c, given), lock: await lockFor(lock, c, given) };
      },
      body: (cap) => requestBody(c, cap),
      handle(run, body) {
        if (body) c.req.raw = withUnreadBody(c.req.raw, body, run?.signal);
        c.set("idempotency", run);
        handled = { run };
        return handleRoute(c, next);
      },
    });
    // A run of the same key under way further out, in which this one waits for itself.
    if (outer && refusal?.code === "IN_PROGRESS" && refusal.key === outer.key) {
      throw new TypeError("idempotent() is mounted twice on this route, with the same key and scope");
    }
    if (handled?.run) Object.assign(handled.run, { status });
    if (!handled) return withPreparedHeaders(c, response);
    // Stryker disable next-line ConditionalExpression: the same response is then put in its own place
    if (response !== c.res) replaceResponse(c, { status, response });
  };
}

/** The provider for this request. */
async function providerFor<E extends Env>(
  provider: IdempotentOptions<E>["provider"],
  c: Context,
): Promise<HttpOptions["provider"]> {
  try {
    return await valueFor(provider, c);
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    // A provider that was not called takes the context for its options.
    const hint = "Is it set, and is the provider called, as in (c) => stripe({ secret: c.env.SECRET })?";
    throw new TypeError(`the function provider has failed: ${cause.message}. ${hint}`, { cause });
  }
}

/** Runs the rest of the route. */
async function handleRoute(c: Context, next: Next): ReturnType<Exchange["handle"]> {
  await next();
  // Reading `c.res` would create an empty 200, and that would be stored.
  if (!c.finalized) throw new TypeError("the handler has returned no response");
  // Hono has already turned the handler's error into a response, of any status.
  return { response: c.res, failed: c.error !== undefined };
}

/** Replaces the handler's response: by a stored one or a problem, or by the same one with a body that can be read. */
function replaceResponse(c: Context, { status, response }: HttpAnswer): void {
  // Stryker disable next-line ConditionalExpression: every other response has these headers
  if (status === "replayed" || status === "refused") {
    // Nothing of the handler's response is sent, but the browser needs the CORS headers to read the new one.
    for (const [name, value] of c.res.headers) {
      if (/^(access-control-.*|vary)$/.test(name)) response.headers.set(name, value);
    }
  }
  c.res = undefined; // otherwise Hono copies the headers of the old response to the new one
  c.res = response;
}

/** The request's body as it arrived, also where middleware further out has read it. */
async function requestBody({ req }: Context, cap: number): Promise<Uint8Array | undefined> {
  if (!req.raw.bodyUsed) return bodyOf(req.raw, cap);
  if (!(await keepsBytes(req))) {
    throw new TypeError("the body has been read before idempotent(): mount that further out");
  }
  const body = new Uint8Array(await req.arrayBuffer());
  return body.length > cap ? undefined : body;
}

/** Whether the bytes that arrived can be made of what was read. */
async function keepsBytes(req: Context["req"]): Promise<boolean> {
  // Of form data they cannot: the boundaries between its parts would differ. Hono caches JSON as text.
  const [first = ""] = Object.keys(req.bodyCache);
  // What is no UTF-8 has become U+FFFD.
  if (first === "text") return !(await req.text()).includes("\ufffd");
  // Stryker disable next-line Regex: Hono caches bodies under no other such name
  return /^(arrayBuffer|blob)$/.test(first);
}
