import "reflect-metadata";
import { Controller, type MiddlewareConsumer, Module, Post, Req } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import express5 from "express";
import express4 from "express4";
import Fastify, { type FastifyRequest } from "fastify";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { HttpRules } from "../../src/http/index.ts";
import { type IdempotentRequest, idempotentExpress, idempotentFastify } from "../../src/node/index.ts";
import type { WebhookProvider } from "../../src/webhooks/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { gate } from "../support/link.ts";
import { outcomeOf } from "../support/outcomes.ts";
import { forgetUndefinedModules } from "../support/require-cache.ts";
import { recordsOf } from "../support/stores.ts";
import { listen, clientOf as senderTo } from "./node-stand.ts";
import {
  delivery,
  honoStand,
  opened,
  plainStand,
  post,
  problemIn,
  provider,
  type Stand,
  seen,
} from "./stand.ts";

// What every framework does: how often a handler acts, and what its clients get.

declare module "fastify" {
  interface FastifyRequest extends IdempotentRequest {}
}

// biome-ignore lint/suspicious/noExplicitAny: Express has no types of its own
type Any = any;
type Options = HttpRules & { readonly provider?: WebhookProvider };
/** What a handler gets, and the JSON that it answers with status 201. */
type Route = (given: IdempotentRequest & { readonly body: string }) => Promise<object>;
type Send = (request: Request) => Promise<Response>;

const at = opened();
const closing: (() => unknown)[] = [];
beforeAll(forgetUndefinedModules);
afterEach(() => Promise.all(closing.splice(0).map((close) => close())));

const overFetch = (stand: Stand, route: Route, options: Options): Send =>
  stand(
    async (request, idempotency, webhook) => {
      const body = await request.text();
      return Response.json(await route({ idempotency, webhook, body }), { status: 201 });
    },
    { redlock: at.client.redlock, ...options },
  );

async function served(listener: unknown): Promise<Send> {
  const { send, close } = await listen(listener);
  closing.push(close);
  return send;
}

const onExpress = (express: Any) => (route: Route, options: Options) => {
  const app = express().set("env", "test");
  app.use(idempotentExpress({ redlock: at.client.redlock, ...options }), express.text({ type: () => true }));
  app.post("/:path", async ({ idempotency, webhook, body }: Any, res: Any) => {
    res.status(201).json(await route({ idempotency, webhook, body }));
  });
  return served(app);
};

async function onFastify(route: Route, options: Options): Promise<Send> {
  const app = Fastify({ forceCloseConnections: true });
  closing.push(() => app.close());
  app.addContentTypeParser(["application/json", "*"], { parseAs: "string" }, (_, body, done) =>
    done(null, body),
  );
  await app.register(idempotentFastify({ redlock: at.client.redlock, ...options }));
  app.post("/:path", async ({ idempotency, webhook, body }: FastifyRequest, reply) =>
    reply.code(201).send(await route({ idempotency, webhook, body: body as string })),
  );
  return senderTo(Number(new URL(await app.listen({ host: "127.0.0.1", port: 0 })).port)).send;
}

/** An app with one controller; its decorators are called by hand, because the compiler of the tests has none. */
async function onNest(route: Route, options: Options): Promise<Send> {
  class Payments {
    pay({ idempotency, webhook, body }: Any): unknown {
      return route({ idempotency, webhook, body: JSON.stringify(body) });
    }
  }
  Controller()(Payments);
  Post(["payments", "hook"])(
    Payments.prototype,
    "pay",
    Object.getOwnPropertyDescriptor(Payments.prototype, "pay")!,
  );
  Req()(Payments.prototype, "pay", 0);
  class App {
    configure(consumer: MiddlewareConsumer): void {
      consumer.apply(idempotentExpress({ redlock: at.client.redlock, ...options })).forRoutes(Payments);
    }
  }
  Module({ controllers: [Payments] })(App);
  const app = await NestFactory.create(App, { logger: false, forceCloseConnections: true, rawBody: true });
  closing.push(() => app.close());
  await app.listen(0, "127.0.0.1");
  return senderTo(Number(new URL(await app.getUrl()).port)).send;
}

describe.each<[name: string, open: (route: Route, options: Options) => Send | Promise<Send>]>([
  ["a function of a request", (route, options) => overFetch(plainStand, route, options)],
  ["Hono", (route, options) => overFetch(honoStand, route, options)],
  ["Express 5", onExpress(express5)],
  ["Express 4", onExpress(express4)],
  ["Fastify", onFastify],
  ["Nest", onNest],
])("%s", (_name, open) => {
  const inJson = { headers: { "content-type": "application/json" } };

  test("five deliveries act once, and a forged one does not", async () => {
    const started = gate();
    const finish = gate();
    let runs = 0;
    const route: Route = async ({ idempotency, webhook, body }) => {
      runs += 1;
      started.open();
      await finish.passed;
      return { runs, key: idempotency?.key, id: webhook?.id, body };
    };
    const send = await open(route, { provider, wait: 60_000 });
    const id = freshKey();
    const signed = (signedWith?: string) => {
      const request = delivery(id, signedWith ? { signedWith } : {});
      request.headers.set("content-type", "application/json");
      return request;
    };
    const sent = [1, 2, 3, 4, 5].map(() => send(signed()));
    await started.passed;
    finish.open();
    const answers = await Promise.all((await Promise.all(sent)).map((answer) => answer.json()));
    expect(answers).toEqual(Array(5).fill({ runs: 1, key: id, id, body: '{"zen":"ok"}' }));
    expect(await problemIn(await send(signed("another")))).toEqual({ status: 401, code: "WEBHOOK_INVALID" });
    expect(runs).toBe(1);
  });

  test("a duplicate is refused during the run, and gets its answer then; other requests are refused", async () => {
    const started = gate();
    const finish = gate();
    const route: Route = async ({ idempotency }) => {
      started.open();
      await finish.passed;
      return { key: idempotency?.key };
    };
    const send = await open(route, {});
    const key = freshKey();
    const running = send(post(key, inJson));
    await started.passed;
    expect(await problemIn(await send(post(key, inJson)))).toEqual({ status: 409, code: "IN_PROGRESS" });
    finish.open();
    const [first, again] = [await seen(await running), await seen(await send(post(key, inJson)))];
    expect([first.status, JSON.parse(`${Buffer.from(first.bytes)}`)]).toEqual([201, { key }]);
    expect(again).toMatchObject({ status: 201, bytes: first.bytes });
    expect(again.headers["idempotent-replayed"]).toBe("true");
    const other = await send(post(key, { ...inJson, body: "{}" }));
    expect(await problemIn(other)).toEqual({ status: 422, code: "FINGERPRINT_MISMATCH" });
    expect(await problemIn(await send(post(null, inJson)))).toEqual({ status: 400, code: "KEY_MISSING" });
  });

  test("an error of the option store is the server's, and the key is free", async () => {
    using _ = vi.spyOn(console, "error").mockReturnValue();
    const failing = () => {
      throw new Error("boom");
    };
    const send = await open(async () => ({ mine: true }), { store: failing });
    const key = freshKey();
    const { error, value } = await outcomeOf(Promise.resolve(send(post(key, inJson))));
    // A function of a request throws it.
    if (value) expect(value.status).toBe(500);
    else expect(error).toEqual(new Error("boom"));
    expect(await recordsOf(at.store, key, [], "http")).toEqual([null]);
  });
});
