import { checkType } from "../check.ts";
import { type Delivery, lockFor, type PerRequest, scopeFor, valueFor } from "../http/delivery.ts";
import {
  checkClient,
  checkProvider,
  type HttpOptions,
  type HttpRules,
  type ResolvedRules,
  resolveRules,
} from "../http/options.ts";
import { type IdempotentRun, serve } from "../http/serve.ts";
import { checkResources } from "../lock/options.ts";
import { HeldResponse } from "./held-response.ts";
import { bodyOf, type NodeRequest, type NodeResponse, requestOf } from "./message.ts";

/**
 * Options of {@link idempotentExpress} and {@link idempotentFastify}. Those that differ between requests may be functions
 * of the framework's request.
 */
export interface NodeOptions<Req, Given extends Delivery | undefined = Delivery | undefined>
  extends HttpRules {
  readonly redlock: PerRequest<HttpOptions["redlock"], [req: Req]>;
  /** The sender of webhooks: the ids of its deliveries are the keys. Only genuine deliveries reach Redis. */
  readonly provider?: PerRequest<NonNullable<HttpOptions["provider"]>, [req: Req]> | undefined;
  /**
   * The owner of the keys: tenant, account, user; one name or several. Without it, any client that knows a key and its
   * request gets the response. A webhook's scope begins with the provider's name, and what the provider adds. A function
   * also gets the verified delivery.
   */
  readonly scope?: PerRequest<string | readonly string[], [req: Req, delivery: Given]> | undefined;
  /**
   * Locks these resources while the handler runs, in the same requests: one name or several, or a function of the request
   * and the verified delivery. `req.idempotency` has a fence. A lock that is held is waited for, for `wait` at most; then
   * the answer is that of a request under way. Without a key the handler runs without the lock. Default: none.
   */
  readonly lock?: PerRequest<string | readonly string[], [req: Req, delivery: Given]> | undefined;
  /** Wall-clock time in ms since 1970 at which the platform stops the code; bounds lease and waiting. Default: none. */
  readonly deadline?: PerRequest<number, [req: Req]> | undefined;
}

/** {@link NodeOptions} with a provider: every request that reaches the handler is a verified delivery. */
export interface NodeWebhookOptions<Req> extends NodeOptions<Req, Delivery> {
  readonly provider: NonNullable<NodeOptions<Req>["provider"]>;
}

/** What a request has behind {@link idempotentExpress} and {@link idempotentFastify}. */
export interface IdempotentRequest {
  /** Undefined where nothing protects the handler: without a key, or with `failOpen` and without a store. */
  idempotency?: IdempotentRun | undefined;
  /** With a `provider`: the delivery, once it is verified; also for a duplicate, and then for middleware further out. */
  webhook?: Delivery | undefined;
}

/** One request to a framework, and how the framework goes on. */
export interface NodeExchange<Req> {
  /** The framework's request. */
  readonly request: Req & IdempotentRequest;
  readonly incoming: NodeRequest;
  readonly outgoing: NodeResponse;
  /** The headers that middleware further out has set. */
  readonly headers: object;
  /** Runs the rest of the route. `held`: the response that it writes, unless nothing protects it. */
  proceed(held?: HeldResponse): void;
  /** Answers in place of the rest of the route; a replayed response is sent as it was stored. */
  reply(response: Response, body: Uint8Array | undefined, isReplayed: boolean): void;
}

/**
 * Checks the options.
 *
 * @param what name of the function that takes them, for errors
 * @throws TypeError | RangeError naming the option
 */
export function resolveNodeRules<Req>(what: string, options: NodeOptions<Req, never>): ResolvedRules {
  const { redlock, provider, lock } = checkType("options", options, "object");
  const rules = resolveRules(what, options, provider !== undefined);
  checkClient(redlock);
  if (provider !== undefined) checkProvider(provider);
  if (lock !== undefined && typeof lock !== "function") checkResources(lock, "lock");
  return rules;
}

/** Answers one request: by the rest of the route, or as an earlier one of its key was answered. */
export async function answerOnce<Req>(
  rules: ResolvedRules,
  { redlock, provider, scope, lock, deadline }: NodeOptions<Req, never>,
  exchange: NodeExchange<Req>,
): Promise<void> {
  const { request, incoming, outgoing } = exchange;
  if (outgoing.headersSent) throw new TypeError("the request has been answered already: mount this before");
  const outer = request.idempotency;
  let held: HeldResponse | undefined;
  let run: IdempotentRun | undefined;
  try {
    const { status, response, refusal } = await serve(rules, {
      request: requestOf(incoming, outgoing),
      redlock: await valueFor(redlock, request),
      provider: await valueFor(provider, request),
      deadline: await valueFor(deadline, request),
      waitUntil: undefined,
      async admitted(delivery) {
        if (delivery) request.webhook = delivery;
        const given = delivery as never;
        return { scope: await scopeFor(scope, request, given), lock: await lockFor(lock, request, given) };
      },
      body: (cap) => bodyOf(incoming, cap, rules.webhook),
      async handle(context) {
        request.idempotency = run = context;
        if (run) held = new HeldResponse(outgoing, rules.maxResponseBody, exchange.headers);
        exchange.proceed(held);
        return held ? held.answered : { response: new Response() };
      },
    });
    // A run of the same key under way further out, in which this one waits for itself.
    if (outer && refusal?.code === "IN_PROGRESS" && refusal.key === outer.key) {
      throw new TypeError("this is mounted twice on the route, with the same key and scope");
    }
    if (run) Object.assign(run, { status });
    if (status === "unguarded") return;
    if (status === "executed" || status === "failed") return held?.send();
    await answerInstead(exchange, held, response, status === "replayed");
  } catch (error) {
    // Who gave the response up has told the framework why.
    if (held?.wasGivenUp) return;
    held?.reset();
    throw error;
  }
}

async function answerInstead<Req>(
  { outgoing, reply }: NodeExchange<Req>,
  held: HeldResponse | undefined,
  response: Response,
  isReplayed: boolean,
): Promise<void> {
  const bytes = new Uint8Array(await response.arrayBuffer());
  const body = bytes.length > 0 ? bytes : undefined;
  // The rest of the request is not read.
  if (response.status === 413) response.headers.set("connection", "close");
  // The framework believes that the handler has answered.
  if (held) held.replace(() => sendWhole(outgoing, response, body));
  else reply(response, body, isReplayed);
}

/** Sends a response whose body is in memory. */
export function sendWhole(res: NodeResponse, response: Response, body: Uint8Array | undefined): void {
  if (res.destroyed) return;
  res.statusCode = response.status;
  for (const [name, value] of response.headers) res.setHeader(name, value);
  // Empty bytes would be a body.
  if (body) res.end(body as never);
  else res.end();
}
