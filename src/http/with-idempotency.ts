import { checkScope, checkType } from "../check.ts";
import type { RunContext } from "../idempotency/index.ts";
import { bodyOf, unread } from "./body.ts";
import { checkClient, checkProvider, type HttpOptions, resolveRules } from "./options.ts";
import { serve } from "./serve.ts";

/**
 * Answers a request once per key: the first by the handler, every later one with what the handler answered then.
 * The key is the request's `Idempotency-Key`, or, with a `provider`, the id of a webhook's delivery.
 *
 * @param handler gets the request with its body unread, and as `run` the key, the run's token, its signal and what
 * is left of its lease; no `run` where nothing protects it: without a key, or with `failOpen` without a store. The
 * request's signal is the run's then: it does not abort when the client hangs up.
 * @returns the response; what is wrong with the request, or keeps it from being handled now, as a problem (RFC 9457)
 * @throws TypeError | RangeError when an option is wrong
 * @throws what the handler throws; the key is free again then
 *
 * @example
 * export default {
 *   fetch: (request, env, ctx) =>
 *     withIdempotency(request, (request, run) => pay(request, run?.signal), {
 *       redlock: Redlock.fromEnv(env),
 *       scope: tenantOf(request),
 *       waitUntil: ctx,
 *     }),
 * };
 */
export async function withIdempotency(
  request: Request,
  handler: (request: Request, run: RunContext | undefined) => Promise<Response> | Response,
  options: HttpOptions,
): Promise<Response> {
  checkType("handler", handler, "function");
  const { redlock, provider, scope, deadline } = checkType("options", options, "object");
  checkClient(redlock);
  if (provider !== undefined) checkProvider(provider);
  const { response } = await serve(resolveRules("withIdempotency", options, provider !== undefined), {
    request,
    redlock,
    provider,
    scope: scope === undefined ? undefined : checkScope(scope),
    deadline,
    waitUntil: undefined,
    body: (cap) => bodyOf(request, cap),
    async handle(run, body) {
      const given = body ? unread(request, body, run?.signal) : request;
      const response = await handler(given, run);
      checkType("the handler's response", response, "object");
      return { response };
    },
  });
  return response;
}
