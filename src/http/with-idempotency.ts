import { checkScope, checkType, wrongType } from "../check.ts";
import type { RunContext } from "../idempotency/index.ts";
import { bodyOf, withUnreadBody } from "./body.ts";
import { checkClient, checkProvider, type HttpOptions, resolveRules } from "./options.ts";
import { serve } from "./serve.ts";

/**
 * Handles a request once per key: the handler answers the first request, and later ones get its stored response. The key
 * is the request's `Idempotency-Key`, or, with a `provider`, the id of a webhook's delivery.
 *
 * @param handler gets the request with its body unread, and `run` with the key, the run's token, its signal and its
 * remaining lease. The request's signal is the run's: it does not abort when the client hangs up. `run` is undefined
 * where nothing protects the handler: without a key, or with `failOpen` and without a store.
 * @returns the response; a problem (RFC 9457) where the request is wrong or cannot be handled now
 * @throws TypeError | RangeError when an option is wrong
 * @throws what the handler throws; then the key is free again
 *
 * @example
 * export default {
 *   fetch: (request, env, ctx) =>
 *     withIdempotency(request, (request, run) => pay(request, run?.signal), {
 *       redlock: new Redlock({ endpoints: endpointsFromEnv(env) }),
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
  if (typeof request?.headers?.get !== "function") throw wrongType("request", request, "a Request");
  if (request.bodyUsed) {
    throw new TypeError(
      "the request's body has been read: call withIdempotency first, or with request.clone()",
    );
  }
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
      const given = body ? withUnreadBody(request, body, run?.signal) : request;
      const response = await handler(given, run);
      if (!response?.headers) throw wrongType("the handler's result", response, "a Response");
      return { response };
    },
  });
  return response;
}
