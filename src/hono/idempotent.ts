import type { Context, MiddlewareHandler } from "hono";
import { checkScope, checkType } from "../check.ts";
import { bodyOf, unread } from "../http/body.ts";
import {
  checkClient,
  checkProvider,
  type HttpOptions,
  type HttpRules,
  resolveRules,
} from "../http/options.ts";
import { type Served, serve } from "../http/serve.ts";
import type { RunContext } from "../idempotency/index.ts";
import { answered, type FromContext, resolved, waitUntilOf } from "./context.ts";

/** What the handler finds as `c.var.idempotency`. */
export interface IdempotentRun extends RunContext {
  /** How the request was answered, for middleware further out; the handler finds none. */
  readonly status?: Served["status"] | undefined;
}

/** What `idempotent()` adds to the context. */
export interface IdempotencyVariables {
  /** Undefined where nothing protects the handler: without a key, or with `failOpen` without a store. */
  idempotency?: IdempotentRun;
}

/** Options of {@link idempotent}; what differs between requests may be a function of the context. */
export interface IdempotentOptions extends HttpRules {
  readonly redlock: FromContext<HttpOptions["redlock"]>;
  /** The sender of webhooks: its deliveries' ids are the keys, and nothing but genuine ones gets to Redis. */
  readonly provider?: FromContext<NonNullable<HttpOptions["provider"]>> | undefined;
  /**
   * Whose keys these are: tenant, account, user; one name or several. Without it, whoever knows a key and the
   * request that went with it gets the response. A webhook's scope begins with what its provider says.
   */
  readonly scope?: FromContext<string | readonly string[]> | undefined;
  /** Wall-clock time in ms since 1970 at which the platform stops the code; bounds lease and waiting. */
  readonly deadline?: FromContext<number> | undefined;
}

/**
 * Hono middleware that answers a request once per key: the first by what stands behind it, every later one with
 * what was answered then. The key is the request's `Idempotency-Key`, or, with a `provider`, the id of a webhook's
 * delivery. Mount it before what reads the body, and behind what compresses or adds CORS headers.
 *
 * @throws TypeError | RangeError at once when an option is wrong
 *
 * @example
 * app.post("/payments", idempotent({ redlock, scope: (c) => c.get("tenant") }), async (c) => {
 *   const payment = await pay(await c.req.json(), { signal: c.var.idempotency?.signal });
 *   return c.json(payment, 201);
 * });
 * app.post("/webhooks/github", idempotent({ redlock, provider: github({ secret }) }), handleEvent);
 */
export function idempotent(
  options: IdempotentOptions,
): MiddlewareHandler<{ Variables: IdempotencyVariables }> {
  const { redlock, provider, scope, deadline } = checkType("options", options, "object");
  const rules = resolveRules("idempotent", options, provider !== undefined);
  checkClient(redlock);
  if (provider !== undefined) checkProvider(provider);

  return async function idempotent(c, next) {
    let ran = false;
    let run: IdempotentRun | undefined;
    const { status, response } = await serve(rules, {
      request: c.req.raw,
      redlock: await resolved(redlock, c),
      provider: await resolved(provider, c),
      // Absent parts would make the keys of unrelated callers the same.
      scope: scope === undefined ? undefined : checkScope(await resolved(scope, c)),
      deadline: await resolved(deadline, c),
      waitUntil: waitUntilOf(c),
      body: (cap) => requestBody(c, cap),
      async handle(context, body) {
        if (body) c.req.raw = unread(c.req.raw, body, context?.signal);
        run = context;
        c.set("idempotency", run);
        ran = true;
        await next();
        // Asking for `c.res` would make an empty 200 of it, and that would be stored.
        if (!c.finalized) throw new TypeError("the handler has returned no response");
        // What it threw is not thrown here: it has become a response already, of whatever status.
        return { response: c.res, failed: c.error !== undefined };
      },
    });
    if (run) Object.assign(run, { status });
    if (!ran) return answered(c, response);
    if (response === c.res) return;
    if (status === "replayed" || status === "refused") {
      // Nobody is told what the handler answered, but the browser must be told that it may read what is.
      for (const [name, value] of c.res.headers) {
        if (/^(access-control-.*|vary)$/.test(name)) response.headers.set(name, value);
      }
    }
    c.res = undefined; // otherwise the headers of the old response are put upon the new one
    c.res = response;
  };
}

/** The request's body as it arrived, also where middleware further out has read it. */
async function requestBody({ req }: Context, cap: number): Promise<Uint8Array | undefined> {
  if (!req.raw.bodyUsed) return bodyOf(req.raw, cap);
  // Form data made bytes again is not what arrived: the boundaries between its parts are drawn anew.
  if (!/^(arrayBuffer|text|blob)$/.test(Object.keys(req.bodyCache)[0] ?? "")) {
    throw new TypeError("the body has been read before idempotent(): mount that further out");
  }
  const body = new Uint8Array(await req.arrayBuffer());
  return body.length > cap ? undefined : body;
}
