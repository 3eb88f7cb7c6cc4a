import { refuseMount, refuseUncalled } from "../http/mounting.ts";
import { resolveRules } from "../http/options.ts";
import {
  answerOnce,
  type IdempotentRequest,
  type NodeOptions,
  type NodeWebhookOptions,
  sendWhole,
} from "./exchange.ts";
import type { NodeRequest, NodeResponse, Origin } from "./message.ts";

declare global {
  namespace Express {
    interface Request extends IdempotentRequest {}
  }
}

/** Properties of a request that Express adds and Connect lacks. */
interface ExpressRequest extends NodeRequest {
  readonly protocol?: string;
  readonly hostname?: string;
}

/** Middleware of Express, Connect and Nest. */
export type NodeMiddleware<Req> = (req: Req, res: NodeResponse, next: (error?: unknown) => void) => void;

/**
 * Middleware for Express 4 and 5, and frameworks that build on it, that handles a request once per key: the handler behind it
 * answers the first request, and later ones get its stored response. The key is the request's `Idempotency-Key`, or, with a
 * `provider`, the id of a webhook's delivery, which is then `req.webhook`. `req.idempotency` is the run.
 *
 * The handler's response is held back until it is stored. Mount this only once per route, after middleware that
 * compresses or adds CORS headers, and before body parsers. They can still parse the body. Behind `express.raw` it
 * works, too, and without a `provider` also behind `express.json` and `express.urlencoded`.
 *
 * Express does not tell middleware that a handler has failed: the response of an error handler is stored like any other,
 * by its status.
 *
 * @throws TypeError | RangeError at once when an option is wrong
 *
 * @example
 * app.post("/payments", idempotentExpress({ redlock, scope: (req) => accountOf(req) }), async (req, res) => {
 *   res.status(201).json(await pay(req.body, { signal: req.idempotency?.signal }));
 * });
 * app.post("/webhooks/github", idempotentExpress({ redlock, provider: github({ secret }) }), handleEvent);
 */
export function idempotentExpress<Req extends NodeRequest = NodeRequest>(
  options: NodeWebhookOptions<Req>,
): NodeMiddleware<Req>;
export function idempotentExpress<Req extends NodeRequest = NodeRequest>(
  options: NodeOptions<Req>,
): NodeMiddleware<Req>;
export function idempotentExpress<Req extends NodeRequest>(
  options: NodeOptions<Req, never>,
  ...more: readonly unknown[]
): NodeMiddleware<Req> {
  if (refuseUncalled("idempotentExpress", more)) return undefined as never;
  const rules = resolveRules("idempotentExpress", options);
  return function idempotent(req, res, next) {
    if (typeof res?.once !== "function") {
      return refuseMount("idempotentExpress got no request of Express", next);
    }
    const answered = answerOnce(rules, options, {
      request: req,
      incoming: req,
      origin: originOf(req),
      outgoing: res,
      pattern: (req as { readonly route?: { readonly path?: unknown } }).route?.path,
      headers: res.getHeaders(),
      proceed: () => next(),
      reply: (response, body) => sendWhole(res, response, body),
    });
    answered.catch(next);
  };
}

/** By the setting `trust proxy`. Express 4 warns of `req.host`, and `req.hostname` has no port. */
function originOf({ protocol, hostname, headers }: ExpressRequest): Origin {
  const forwarded = String(headers["x-forwarded-host"] ?? "").replace(/\s*,.*/, "");
  const isTrusted = forwarded.replace(/:\d+$/, "") === hostname;
  return { protocol, host: isTrusted ? forwarded : undefined };
}
