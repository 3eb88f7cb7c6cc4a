import type { Delivery, ResolvedRules, RouteOptions } from "../http/options.ts";
import { routeFor } from "../http/route.ts";
import { type IdempotentRun, serve } from "../http/serve.ts";
import { HeldResponse } from "./held-response.ts";
import {
  bodyOf,
  dropUnread,
  type NodeRequest,
  type NodeResponse,
  type Origin,
  requestOf,
} from "./message.ts";

/**
 * Options of {@link idempotentExpress} and {@link idempotentFastify}. Those that differ between requests may be functions
 * of the framework's request.
 */
export interface NodeOptions<Req, Given extends Delivery | undefined = Delivery | undefined>
  extends RouteOptions<[req: Req], Given> {}

/** {@link NodeOptions} with a provider: every request that reaches the handler is a verified delivery. */
export interface NodeWebhookOptions<Req> extends NodeOptions<Req, Delivery> {
  readonly provider: NonNullable<NodeOptions<Req>["provider"]>;
}

/** The properties of a request behind {@link idempotentExpress} and {@link idempotentFastify}. */
export interface IdempotentRequest {
  /** Undefined where nothing protects the handler: without a key, or with `failOpen` and without a store. */
  idempotency?: IdempotentRun | undefined;
  /** With a `provider`: the delivery, once it is verified. Middleware further out sees it for a duplicate, too. */
  webhook?: Delivery | undefined;
}

/** One request to a framework, and how the framework goes on. */
export interface NodeExchange<Req> {
  /** The framework's request. */
  readonly request: Req & IdempotentRequest;
  readonly incoming: NodeRequest;
  readonly origin: Origin;
  readonly outgoing: NodeResponse;
  /** The declared pattern of the route, if it is known. */
  readonly pattern: unknown;
  /** The headers that middleware further out has set. */
  readonly headers: object;
  /** Runs the rest of the route. `held`: the response that it writes, unless nothing protects it. */
  proceed(held?: HeldResponse): void;
  /** Answers in place of the rest of the route. A replayed response is sent as it was stored. */
  reply(response: Response, body: Uint8Array | undefined, isReplayed: boolean): void;
}

/** Answers one request: by the rest of the route, or as an earlier one of its key was answered. */
export async function answerOnce<Req>(
  rules: ResolvedRules,
  options: NodeOptions<Req, never>,
  exchange: NodeExchange<Req>,
): Promise<void> {
  const { request, incoming, outgoing } = exchange;
  if (outgoing.headersSent) throw new TypeError("the request has been answered already: mount this before");
  let held: HeldResponse | undefined;
  const gone = new AbortController();
  const leave = () => gone.abort();
  outgoing.once("close", leave);
  try {
    const { status, response } = await serve(rules, {
      ...(await routeFor(options, [request], (delivery) => {
        request.webhook = delivery;
      })),
      request: requestOf(incoming, gone.signal, exchange.origin),
      pattern: exchange.pattern,
      outer: request.idempotency,
      body: (cap) => bodyOf(incoming, cap, rules.webhook),
      async handle(run) {
        // Only waiting stops then. Besides, Node warns of the eleventh listener, of which a pipeline adds seven.
        outgoing.off("close", leave);
        request.idempotency = run;
        if (run) held = new HeldResponse(outgoing, rules.maxResponseBody, exchange.headers);
        exchange.proceed(held);
        return held ? held.answered : { response: new Response() };
      },
    });
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
  { incoming, outgoing, reply }: NodeExchange<Req>,
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
  dropUnread(incoming);
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
