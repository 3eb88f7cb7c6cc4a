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

/** Options of {@link idempotentExpress} and {@link idempotentFastify}. Some may be functions of the request. */
export interface NodeOptions<Req, Given extends Delivery | undefined = Delivery | undefined>
  extends RouteOptions<[req: Req], Given> {}

/** With a provider, every request that reaches the handler is a verified delivery. */
export interface NodeWebhookOptions<Req> extends NodeOptions<Req, Delivery> {
  readonly provider: NonNullable<NodeOptions<Req>["provider"]>;
}

/** A request's properties behind {@link idempotentExpress} and {@link idempotentFastify}. */
export interface IdempotentRequest {
  /** Undefined if nothing protects the handler: without a key, or with `failOpen` during an outage. */
  idempotency?: IdempotentRun | undefined;
  /** With a `provider`: the verified delivery. */
  webhook?: Delivery | undefined;
}

export interface NodeExchange<Req> {
  readonly request: Req & IdempotentRequest;
  readonly incoming: NodeRequest;
  readonly origin: Origin;
  readonly outgoing: NodeResponse;
  readonly pattern: unknown;
  /** Set by middleware further out. */
  readonly headers: object;
  /** `held` is undefined if nothing protects the route. */
  proceed(held?: HeldResponse): void;
  /** A replayed response is sent as it was stored. */
  reply(response: Response, body: Uint8Array | undefined, isReplayed: boolean): void;
}

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
        // Only waiting ends when the client disconnects. Besides, Node warns of the eleventh listener, and a pipeline
        // adds seven.
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
    // Breaking off has told the framework why.
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
  if (response.status === 413) response.headers.set("connection", "close");
  // The framework believes that the handler has answered.
  if (held) held.replace(() => sendWhole(outgoing, response, body));
  else reply(response, body, isReplayed);
  dropUnread(incoming);
}

export function sendWhole(res: NodeResponse, response: Response, body: Uint8Array | undefined): void {
  if (res.destroyed) return;
  res.statusCode = response.status;
  for (const [name, value] of response.headers) res.setHeader(name, value);
  // Empty bytes would be a body.
  if (body) res.end(body as never);
  else res.end();
}
