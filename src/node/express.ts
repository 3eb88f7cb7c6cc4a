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

/** Not in Connect. */
interface ExpressRequest extends NodeRequest {
  readonly protocol?: string;
  readonly hostname?: string;
}

/** Middleware of Express, Connect and Nest. */
export type NodeMiddleware<Req> = (req: Req, res: NodeResponse, next: (error?: unknown) => void) => void;

/**
 * Middleware for Express 4 and 5, Connect and Nest that runs the handler once per key. Later requests get its stored
 * response. The key is the `Idempotency-Key`, or with a `provider` the delivery's id (`req.webhook`). `req.idempotency`
 * is the run.
 *
 * Mount it once per route, after middleware that compresses or adds CORS headers, and before body parsers. An error
 * handler's response is stored by its status, because Express does not tell that the handler has failed.
 *
 * @throws TypeError | RangeError an option is wrong
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

/** By `trust proxy`. Express 4 warns of `req.host`, and `req.hostname` has no port. */
function originOf({ protocol, hostname, headers }: ExpressRequest): Origin {
  const forwarded = String(headers["x-forwarded-host"] ?? "").replace(/\s*,.*/, "");
  const isTrusted = forwarded.replace(/:\d+$/, "") === hostname;
  return { protocol, host: isTrusted ? forwarded : undefined };
}
