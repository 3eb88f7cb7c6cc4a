import { checkType, wrongType } from "../check/check.ts";
import type { LockedRunContext, RunContext } from "../idempotency/index.ts";
import { bodyOf, withUnreadBody } from "./body.ts";
import {
  checkProvider,
  type Delivery,
  type HttpOptions,
  type Locked,
  resolveRules,
  type WebhookOptions,
} from "./options.ts";
import { routeFor } from "./route.ts";
import { serve } from "./serve.ts";

type Handler<Run, Given> = (request: Request, run: Run, delivery: Given) => Promise<Response> | Response;

/**
 * Runs the handler once per key. Later requests get its stored response. The key is the `Idempotency-Key`, or with a
 * `provider` the id of a webhook's delivery. If several functions share a secret, give each the option `handler`.
 *
 * @param handler gets the request, the `run`, and with a `provider` the verified `delivery`. The request's signal is
 * the run's, which does not abort when the client disconnects. `run` is undefined if nothing protects the handler:
 * without a key, or with `failOpen` during an outage
 * @returns the response, or a problem (RFC 9457)
 * @throws TypeError | RangeError an option is wrong
 * @throws the handler's error. The key is then free again
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
  handler: Handler<LockedRunContext, Delivery>,
  options: Locked<WebhookOptions>,
): Promise<Response>;
export async function withIdempotency(
  request: Request,
  handler: Handler<RunContext, Delivery>,
  options: WebhookOptions,
): Promise<Response>;
export async function withIdempotency(
  request: Request,
  handler: Handler<LockedRunContext | undefined, Delivery | undefined>,
  options: Locked<HttpOptions>,
): Promise<Response>;
export async function withIdempotency(
  request: Request,
  handler: Handler<RunContext | undefined, Delivery | undefined>,
  options: HttpOptions,
): Promise<Response>;
export async function withIdempotency<Run extends RunContext | undefined, Given extends Delivery | undefined>(
  request: Request,
  handler: Handler<Run, Given>,
  options: HttpOptions<Given>,
): Promise<Response> {
  if (typeof request?.headers?.get !== "function") throw wrongType("request", request, "a Request");
  if (request.bodyUsed) {
    throw new TypeError(
      "the request's body has been read: call withIdempotency first, or with request.clone()",
    );
  }
  checkType("handler", handler, "function");
  const rules = resolveRules("withIdempotency", options);
  if (rules.webhook) checkProvider(options.provider);
  const { response } = await serve(rules, {
    ...(await routeFor(options, [])),
    request,
    body: (cap) => bodyOf(request, cap),
    async handle(run, body, delivery) {
      const given = body ? withUnreadBody(request, body, run?.signal) : request;
      let response: Response;
      try {
        response = await handler(given, run as Run, delivery as Given);
      } catch (error) {
        throw explain(error, request, given);
      }
      if (!response?.headers) throw wrongType("the handler's result", response, "a Response");
      return { response };
    },
  });
  return response;
}

/** The handler has read the outer request, whose body is used up. */
function explain(error: unknown, outer: Request, given: Request): unknown {
  const { name, message } = Object(error) as Error;
  // Each platform words it differently.
  const isUsedUp = name === "TypeError" && /unusable|already|locked|used body/i.test(message);
  if (!isUsedUp || !outer.bodyUsed || given.bodyUsed) return error;
  const remedy = "the handler must read the request that it is given, not the outer one";
  return new TypeError(`${remedy} (${message})`, { cause: error });
}
