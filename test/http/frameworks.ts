import "reflect-metadata";
import { Controller, type MiddlewareConsumer, Module, Post, Req, Res } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import express5 from "express";
import express4 from "express4";
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import { type Context, Hono } from "hono";
import { afterEach, beforeAll } from "vitest";
import { idempotent } from "../../src/hono/index.ts";
import { type HttpRules, withIdempotency } from "../../src/http/index.ts";
import { type IdempotentRequest, idempotentExpress, idempotentFastify } from "../../src/node/index.ts";
import type { WebhookProvider } from "../../src/webhooks/index.ts";
import { forgetUndefinedModules } from "../support/require-cache.ts";
import { listen, clientOf as senderTo } from "./node-stand.ts";

// Every framework, with guarded routes.

declare module "fastify" {
  interface FastifyRequest extends IdempotentRequest {}
}

// biome-ignore lint/suspicious/noExplicitAny: Express has no types of its own
export type Any = any;
/** Options of every framework, whose functions get its context. */
export type Options = HttpRules & {
  readonly redlock: Any;
  readonly provider?: WebhookProvider;
  readonly scope?: Any;
  readonly lock?: Any;
};
/** What a handler gets, and its answer: JSON with status 201. */
export type Route = (
  given: IdempotentRequest & { readonly path: string; readonly body: string },
) => Promise<Answer>;
interface Answer {
  readonly headers?: Readonly<Record<string, string>>;
  readonly json: object;
}
export type Send = (request: Request) => Promise<Response>;

/** An app: each of its paths has a guard with options of its own, and all have middleware further out. */
export interface App {
  readonly route: Route;
  /** By path. */
  readonly guards: Readonly<Record<string, Options>>;
  /** Sees what middleware further out knows after each answer. */
  readonly watch?: ((seen: Pick<IdempotentRequest, "idempotency" | "webhook">) => void) | undefined;
  /** The guards are mounted twice. */
  readonly isTwice?: boolean | undefined;
}
export type Open = (app: App) => Send | Promise<Send>;

export interface Framework {
  readonly open: Open;
  /** A header of the request that an option's function gets. */
  headerOf(context: Any, name: string): string;
}

const closing: (() => unknown)[] = [];

/** Closes the apps of each test of the file. */
export function closeApps(): void {
  beforeAll(forgetUndefinedModules);
  afterEach(() => Promise.all(closing.splice(0).map((close) => close())));
}

/** The headers that middleware further out sets for every request: of its origin. */
const outerHeaders = (origin = "none") => ({
  "access-control-allow-origin": origin,
  vary: "origin",
  "x-outer": origin,
});

/** A guard, or two of them. */
const mounted = <Guard>(guard: () => Guard, isTwice = false): Guard[] =>
  isTwice ? [guard(), guard()] : [guard()];

/** A function of a request, which knows no pattern. */
export const fetching: Open =
  ({ route, guards }) =>
  (request) => {
    const path = new URL(request.url).pathname;
    const answer = async (request: Request, idempotency: Any, webhook: Any) => {
      const { headers = {}, json } = await route({ path, idempotency, webhook, body: await request.text() });
      return Response.json(json, { status: 201, headers });
    };
    return withIdempotency(request, answer, guards[path] ?? Object.values(guards)[0]!);
  };

export const onHono: Open = ({ route, guards, watch, isTwice }) => {
  const app = new Hono().onError((error, c) => c.text(error.message, 500));
  app.use(async (c: Context, next) => {
    // As Hono's cors does.
    for (const [name, value] of Object.entries(outerHeaders(c.req.header("origin")))) {
      c.res.headers.set(name, value);
    }
    await next();
    watch?.({ idempotency: c.get("idempotency"), webhook: c.get("webhook") });
  });
  for (const [path, options] of Object.entries(guards)) {
    const [, base = "", end = ""] = /^(\/\w+)?(\/.*)$/.exec(path)!;
    const handler = async (c: Context) => {
      const { idempotency, webhook } = c.var;
      const { headers = {}, json } = await route({ path, idempotency, webhook, body: await c.req.text() });
      return c.json(json, 201, headers);
    };
    const guarded = new Hono().on("POST", [end], ...mounted(() => idempotent(options), isTwice), handler);
    app.route(base || "/", guarded);
  }
  return async (request) => app.fetch(request);
};

/** Middleware of Express that stands further out. */
const outerOf =
  ({ watch }: App) =>
  (req: Any, res: Any, next: Any) => {
    for (const [name, value] of Object.entries(outerHeaders(req.headers.origin))) res.setHeader(name, value);
    res.on("finish", () => watch?.(req));
    next();
  };

/** Serves a listener until the test ends. */
export async function served(listener: unknown): Promise<Send> {
  const { send, close } = await listen(listener);
  closing.push(close);
  return send;
}

const onExpress =
  (express: Any): Open =>
  (given) => {
    const app = express().set("env", "test").use(outerOf(given));
    for (const [path, options] of Object.entries(given.guards)) {
      const guards = mounted(() => idempotentExpress(options), given.isTwice);
      app.post(path, ...guards, express.text({ type: () => true }), async (req: Any, res: Any) => {
        const { idempotency, webhook, body } = req;
        const { headers = {}, json } = await given.route({ path, idempotency, webhook, body });
        res.status(201).set(headers).json(json);
      });
    }
    app.use((error: Error, _req: Any, res: Any, _next: Any) => res.status(500).send(error.message));
    return served(app);
  };

const onFastify: Open = async ({ route, guards, watch, isTwice }) => {
  const app = Fastify({
    forceCloseConnections: true,
    routerOptions: { caseSensitive: false, ignoreDuplicateSlashes: true },
  });
  closing.push(() => app.close());
  app.addContentTypeParser(["application/json", "*"], { parseAs: "string" }, (_, body, done) =>
    done(null, body),
  );
  app.addHook("onRequest", async ({ headers }, reply) => void reply.headers(outerHeaders(headers.origin)));
  app.addHook("onResponse", async (request) => watch?.(request));
  for (const [path, options] of Object.entries(guards)) {
    // Fastify makes two routes of it: with a slash at the end and without.
    const routes = async (context: FastifyInstance) => {
      for (const guard of mounted(() => idempotentFastify(options), isTwice)) await context.register(guard);
      context.post("/", async ({ idempotency, webhook, body }: FastifyRequest, reply) => {
        const given = await route({ path, idempotency, webhook, body: body as string });
        return reply
          .code(201)
          .headers(given.headers ?? {})
          .send(given.json);
      });
    };
    await app.register(routes, { prefix: path });
  }
  return senderTo(Number(new URL(await app.listen({ host: "127.0.0.1", port: 0 })).port)).send;
};

/** An app with one controller; its decorators are called by hand, because the compiler of the tests has none. */
export const onNest: Open = async (given) => {
  class Payments {
    async pay({ path, idempotency, webhook, body }: Any, res: Any): Promise<void> {
      const text = JSON.stringify(body);
      const { headers = {}, json } = await given.route({ path, idempotency, webhook, body: text });
      res.status(201).set(headers).json(json);
    }
  }
  const { prototype } = Payments;
  Controller()(Payments);
  Post(Object.keys(given.guards))(prototype, "pay", Object.getOwnPropertyDescriptor(prototype, "pay")!);
  Req()(prototype, "pay", 0);
  Res()(prototype, "pay", 1);
  class Root {
    configure(consumer: MiddlewareConsumer): void {
      const [options] = Object.values(given.guards);
      consumer.apply(...mounted(() => idempotentExpress(options!), given.isTwice)).forRoutes(Payments);
    }
  }
  Module({ controllers: [Payments] })(Root);
  const app = await NestFactory.create(Root, { logger: false, forceCloseConnections: true, rawBody: true });
  app.use(outerOf(given));
  closing.push(() => app.close());
  await app.listen(0, "127.0.0.1");
  return senderTo(Number(new URL(await app.getUrl()).port)).send;
};

const nodeHeader: Framework["headerOf"] = ({ headers }, name) => String(headers[name]);
/** Those whose guards know the pattern of their route. */
export const withPattern: readonly (readonly [name: string, framework: Framework])[] = [
  ["Hono", { open: onHono, headerOf: (c, name) => c.req.header(name) }],
  ["Express 5", { open: onExpress(express5), headerOf: nodeHeader }],
  ["Express 4", { open: onExpress(express4), headerOf: nodeHeader }],
  ["Fastify", { open: onFastify, headerOf: nodeHeader }],
];
export const withMiddleware: typeof withPattern = [
  ...withPattern,
  ["Nest", { open: onNest, headerOf: nodeHeader }],
];
