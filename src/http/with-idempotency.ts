import { checkScope, checkType, wrongType } from "../check.ts";
import type { LockedRunContext, RunContext } from "../idempotency/index.ts";
import { checkResources } from "../lock/options.ts";
import { bodyOf, withUnreadBody } from "./body.ts";
import { type Delivery, lockFor, scopeFor } from "./delivery.ts";
import {
  checkClient,
  checkProvider,
  type HttpOptions,
  type Locked,
  neededProvider,
  resolveRules,
  type WebhookOptions,
} from "./options.ts";
import { serve } from "./serve.ts";

/**
 * Handles a request once per key: the handler answers the first request, and later ones get its stored response. The key
 * is the request's `Idempotency-Key`, or, with a `provider`, the id of a webhook's delivery.
 *
 * @param handler gets the request with its body unread; `run` with the key, the run's token, its signal and its remaining
 * lease, and with `lock` its fence; and with a `provider` the verified `delivery`. The request's signal is the run's: it does not abort when the
 * client hangs up. `run` is undefined where nothing protects the handler: without a key, or with `failOpen` and without
 * a store; a delivery always has one.
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
  handler: (request: Request, run: LockedRunContext, delivery: Delivery) => Promise<Response> | Response,
  options: Locked<WebhookOptions>,
): Promise<Response>;
export async function withIdempotency(
  request: Request,
  handler: (request: Request, run: RunContext, delivery: Delivery) => Promise<Response> | Response,
  options: WebhookOptions,
): Promise<Response>;
export async function withIdempotency(
  request: Request,
  handler: (
    request: Request,
    run: LockedRunContext | undefined,
    delivery: Delivery | undefined,
  ) => Promise<Response> | Response,
  options: Locked<HttpOptions>,
): Promise<Response>;
export async function withIdempotency(
  request: Request,
  handler: (
    request: Request,
    run: RunContext | undefined,
    delivery: Delivery | undefined,
  ) => Promise<Response> | Response,
  options: HttpOptions,
): Promise<Response>;
export async function withIdempotency<Run extends RunContext | undefined, Given extends Delivery | undefined>(
  request: Request,
  handler: (request: Request, run: Run, delivery: Given) => Promise<Response> | Response,
  options: HttpOptions<Given>,
): Promise<Response> {
  if (typeof request?.headers?.get !== "function") throw wrongType("request", request, "a Request");
  if (request.bodyUsed) {
    throw new TypeError(
      "the request's body has been read: call withIdempotency first, or with request.clone()",
    );
  }
  checkType("handler", handler, "function");
  const { redlock, provider, scope, lock, deadline } = checkType("options", options, "object");
  checkClient(redlock);
  if (typeof provider === "function") throw wrongType("provider", provider, neededProvider);
  if (provider !== undefined) checkProvider(provider);
  if (scope !== undefined && typeof scope !== "function") checkScope(scope);
  if (lock !== undefined && typeof lock !== "function") checkResources(lock, "lock");
  const { response } = await serve(resolveRules("withIdempotency", options, provider !== undefined), {
    request,
    redlock,
    provider,
    deadline,
    waitUntil: undefined,
    admitted: async (delivery) => ({
      scope: await scopeFor(scope, delivery as Given),
      lock: await lockFor(lock, delivery as Given),
    }),
    body: (cap) => bodyOf(request, cap),
    async handle(run, body, delivery) {
      const given = body ? withUnreadBody(request, body, run?.signal) : request;
      const response = await handler(given, run as Run, delivery as Given);
      if (!response?.headers) throw wrongType("the handler's result", response, "a Response");
      return { response };
    },
  });
  return response;
}
