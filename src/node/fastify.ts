import { refuseMount, refuseUncalled } from "../http/mounting.ts";
import { resolveRules } from "../http/options.ts";
import {
  answerOnce,
  type IdempotentRequest,
  type NodeOptions,
  type NodeWebhookOptions,
  sendWhole,
} from "./exchange.ts";
import type { HeldResponse } from "./held-response.ts";
import type { NodeRequest, NodeResponse } from "./message.ts";

/** The used part of Fastify's request. */
export interface FastifyRequestLike extends IdempotentRequest {
  readonly raw: NodeRequest;
  readonly headers: NodeRequest["headers"];
  /** Like `host`, by the option `trustProxy`. */
  readonly protocol: string;
  readonly host: string;
  readonly params: unknown;
  readonly query: unknown;
  readonly routeOptions: { readonly url?: string | undefined };
}

interface Reply {
  readonly raw: NodeResponse;
  getHeaders(): object;
  code(status: number): unknown;
  header(name: string, value: string): unknown;
  hijack(): unknown;
  send(body?: Uint8Array): unknown;
}

type Next = (error?: Error) => void;

/** The used part of a Fastify instance. */
export interface FastifyLike {
  addHook(name: never, hook: never): unknown;
  hasRequestDecorator(name: string): boolean;
  decorateRequest(name: never): unknown;
}

/** A plugin of Fastify, for `register`. */
export type FastifyPlugin = (app: FastifyLike, options: object, done: () => void) => void;

/**
 * A plugin for Fastify 5 that runs the handlers of its context once per key. Later requests get the stored response.
 * The key is the `Idempotency-Key`, or with a `provider` the delivery's id (`request.webhook`). `request.idempotency`
 * is the run.
 *
 * Options that are functions are called in an `onRequest` hook: add the hooks that they rely on before. The answer to a
 * handler's error is never stored.
 *
 * @throws TypeError | RangeError an option is wrong
 *
 * @example
 * app.register(async (payments) => {
 *   await payments.register(idempotentFastify({ redlock, scope: (request) => accountOf(request) }));
 *   payments.post("/payments", async (request, reply) => {
 *     reply.code(201);
 *     return pay(request.body);
 *   });
 * });
 */
export function idempotentFastify<Req extends FastifyRequestLike = FastifyRequestLike>(
  options: NodeWebhookOptions<Req>,
): FastifyPlugin;
export function idempotentFastify<Req extends FastifyRequestLike = FastifyRequestLike>(
  options: NodeOptions<Req>,
): FastifyPlugin;
export function idempotentFastify<Req extends FastifyRequestLike>(
  options: NodeOptions<Req, never>,
  ...more: readonly unknown[]
): FastifyPlugin {
  if (refuseUncalled("idempotentFastify", more)) return undefined as never;
  const rules = resolveRules("idempotentFastify", options);
  const running = new WeakMap<object, HeldResponse>();
  const plugin: FastifyPlugin = (app, _, done) => {
    if (typeof app?.hasRequestDecorator !== "function") {
      return refuseMount("idempotentFastify got no instance of Fastify", done);
    }
    for (const name of ["idempotency", "webhook"]) {
      if (!app.hasRequestDecorator(name)) app.decorateRequest(name as never);
    }
    const onRequest = (request: Req, reply: Reply, next: Next) => {
      const answered = answerOnce(rules, options, {
        request,
        incoming: request.raw,
        origin: request,
        outgoing: reply.raw,
        pattern: request.routeOptions.url,
        headers: { ...reply.raw.getHeaders(), ...reply.getHeaders() },
        proceed(held) {
          if (held) running.set(request, held);
          next();
        },
        reply(response, body, isReplayed) {
          // `onSend` hooks have made the stored bytes, so they must not get them again.
          if (isReplayed) {
            reply.hijack();
            for (const [name, value] of Object.entries(reply.getHeaders())) reply.raw.setHeader(name, value);
            return sendWhole(reply.raw, response, body);
          }
          reply.code(response.status);
          for (const [name, value] of response.headers) reply.header(name, value);
          reply.send(body);
        },
      });
      answered.catch(next);
    };
    const onError = (request: Req, _reply: Reply, _error: unknown, next: Next) => {
      const held = running.get(request);
      if (held) held.hasFailed = true;
      next();
    };
    app.addHook("onRequest" as never, onRequest as never);
    app.addHook("onError" as never, onError as never);
    done();
  };
  // Its hooks are for the context that registers it, not for one of its own.
  return Object.assign(plugin, {
    [Symbol.for("skip-override")]: true,
    [Symbol.for("fastify.display-name")]: "redlock-edge",
  });
}
