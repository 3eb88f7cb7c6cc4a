import "reflect-metadata";
import {
  Controller,
  HttpException,
  type INestApplication,
  type MiddlewareConsumer,
  Module,
  Post,
  Req,
} from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { idempotentExpress, type NodeOptions, type NodeRequest } from "../../src/node/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { type Client, clientOf, type OpenStore } from "../support/stores.ts";
import { clientOf as senderTo } from "./node-stand.ts";
import { delivery, post, problemIn, provider, seen, stores } from "./stand.ts";

let store: OpenStore;
let client: Client;
const apps: INestApplication[] = [];
beforeAll(async () => {
  store = await stores[0]!.open();
  client = clientOf(store);
});
afterEach(() => Promise.all(apps.splice(0).map((app) => app.close())));
afterAll(() => store.close());

type Guarded = NodeRequest & Express.Request;

/** An app with one controller; its decorators are called by hand, because the compiler of the tests has none. */
async function serve(handler: (req: Guarded) => unknown, { rawBody, ...options }: Options = {}) {
  class Payments {
    pay(req: Guarded): unknown {
      return handler(req);
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
      const once = idempotentExpress({ redlock: client.redlock, ...options });
      consumer.apply(once).forRoutes(Payments);
    }
  }
  Module({ controllers: [Payments] })(App);
  const app = await NestFactory.create(App, {
    logger: false,
    forceCloseConnections: true,
    rawBody: rawBody ?? false,
  });
  apps.push(app);
  await app.listen(0, "127.0.0.1");
  return senderTo(Number(new URL(await app.getUrl()).port));
}

type Options = Partial<NodeOptions<NodeRequest>> & { rawBody?: boolean };

const inJson = { headers: { "content-type": "application/json" } };

test("five deliveries act once, with rawBody", async () => {
  let runs = 0;
  const stand = await serve(
    (req) => {
      runs += 1;
      return { id: req.webhook?.id, body: req.body };
    },
    { provider, wait: 60_000, rawBody: true },
  );
  const id = freshKey();
  const deliveries = [1, 2, 3, 4, 5].map(() => {
    const request = delivery(id);
    request.headers.set("content-type", "application/json");
    return stand.send(request);
  });
  const bodies = await Promise.all((await Promise.all(deliveries)).map((answer) => answer.json()));
  expect(bodies).toEqual(Array(5).fill({ id, body: { zen: "ok" } }));
  expect(runs).toBe(1);
});

test("duplicates replay byte for byte; another request and one without a key are refused", async () => {
  let runs = 0;
  const stand = await serve((req) => {
    runs += 1;
    return { runs, key: req.idempotency?.key };
  });
  const key = freshKey();
  const [first, again] = [
    await seen(await stand.send(post(key, inJson))),
    await seen(await stand.send(post(key, inJson))),
  ];
  expect(first.status).toBe(201);
  expect(again).toMatchObject({ status: 201, bytes: first.bytes });
  expect(again.headers["idempotent-replayed"]).toBe("true");
  expect((await stand.send(post(key, { ...inJson, body: "{}" }))).status).toBe(422);
  expect(await problemIn(await stand.send(post(null, inJson)))).toEqual({ status: 400, code: "KEY_MISSING" });
});

test("a handler that throws runs again; an exception of Nest is a response like any other", async () => {
  let runs = 0;
  const stand = await serve(() => {
    runs += 1;
    if (runs === 1) throw new Error("boom");
    throw new HttpException("no such account", 404);
  });
  const key = freshKey();
  const statuses = [];
  for (let times = 0; times < 3; times += 1) statuses.push((await stand.send(post(key, inJson))).status);
  expect([statuses, runs]).toEqual([[500, 404, 404], 2]);
});
