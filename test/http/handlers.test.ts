import express5 from "express";
import express4 from "express4";
import Fastify from "fastify";
import { Hono } from "hono";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { idempotent } from "../../src/hono/index.ts";
import { type Delivery, type HttpEvent, type HttpRules, withIdempotency } from "../../src/http/index.ts";
import { deliveryKey } from "../../src/inbox/index.ts";
import { type IdempotentRequest, idempotentExpress, idempotentFastify } from "../../src/node/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { gate } from "../support/link.ts";
import { forgetUndefinedModules } from "../support/require-cache.ts";
import { listen, clientOf as senderTo } from "./node-stand.ts";
import { delivery, opened, problemIn, provider } from "./stand.ts";

// Several handlers behind one secret: what is one thing to be done, and what are two.

declare module "fastify" {
  interface FastifyRequest extends IdempotentRequest {}
}

// biome-ignore lint/suspicious/noExplicitAny: Express has no types of its own
type Any = any;
type Send = (request: Request) => Promise<Response>;
type Options = HttpRules & { readonly provider?: typeof provider };
/** What the handler of a path does, and its answer. */
type Act = (path: string, webhook: Delivery | undefined) => Promise<string> | string;
/** Serves paths, each by a handler of its own. */
type Open = (
  paths: readonly string[],
  act: Act,
  optionsOf: (path: string) => Options,
) => Promise<Send> | Send;

const at = opened();
const closing: (() => unknown)[] = [];
beforeAll(forgetUndefinedModules);
afterEach(() => Promise.all(closing.splice(0).map((close) => close())));

const guardOf = (options: Options) => ({ redlock: at.client.redlock, onEvent: () => undefined, ...options });

const onHono: Open = (paths, act, optionsOf) => {
  const routes = new Hono();
  for (const path of paths) {
    routes.post(path, idempotent(guardOf(optionsOf(path))), async (c) =>
      c.text(await act(path, c.var.webhook)),
    );
  }
  const app = new Hono().route("/hooks", routes);
  return async (request) => app.fetch(request);
};

const onExpress =
  (express: Any): Open =>
  async (paths, act, optionsOf) => {
    const app = express().set("env", "test");
    for (const path of paths) {
      app.post(`/hooks${path}`, idempotentExpress(guardOf(optionsOf(path))), async (req: Any, res: Any) =>
        res.send(await act(path, req.webhook)),
      );
    }
    const { send, close } = await listen(app);
    closing.push(close);
    return send;
  };

const onFastify: Open = async (paths, act, optionsOf) => {
  const app = Fastify({
    forceCloseConnections: true,
    routerOptions: { caseSensitive: false, ignoreDuplicateSlashes: true },
  });
  closing.push(() => app.close());
  app.addContentTypeParser("*", (_request, _body, done) => done(null));
  for (const path of paths) {
    // Fastify makes two routes of it: with a slash at the end and without.
    await app.register(
      async (routes) => {
        await routes.register(idempotentFastify(guardOf(optionsOf(path))));
        routes.post("/", async ({ webhook }) => act(path, webhook));
      },
      { prefix: `/hooks${path}` },
    );
  }
  return senderTo(Number(new URL(await app.listen({ host: "127.0.0.1", port: 0 })).port)).send;
};

const plain: Open = (_paths, act, optionsOf) => async (request) => {
  const path = new URL(request.url).pathname.replace("/hooks", "");
  const answer = async (_request: Request, _run: unknown, webhook?: Delivery) =>
    new Response(await act(path, webhook));
  return withIdempotency(request, answer, guardOf(optionsOf(path)));
};

/** Middleware for all routes, which knows no pattern. */
const everywhereOnHono: Open = (_paths, act, optionsOf) => {
  const app = new Hono().use(idempotent(guardOf(optionsOf("*"))));
  app.post("*", async (c) => c.text(await act(c.req.path.replace("/hooks", ""), c.get("webhook" as never))));
  return async (request) => app.fetch(request);
};
const everywhereOnExpress: Open = async (_paths, act, optionsOf) => {
  const app = express5()
    .set("env", "test")
    .use(idempotentExpress(guardOf(optionsOf("*"))));
  app.use(async (req: Any, res: Any) => res.send(await act(req.path.replace("/hooks", ""), req.webhook)));
  const { send, close } = await listen(app);
  closing.push(close);
  return send;
};

const withPattern: [name: string, open: Open][] = [
  ["Hono", onHono],
  ["Express 5", onExpress(express5)],
  ["Express 4", onExpress(express4)],
  ["Fastify", onFastify],
];
const withoutPattern: [name: string, open: Open][] = [
  ["a function of a request", plain],
  ["middleware of all routes of Hono", everywhereOnHono],
  ["middleware of all routes of Express", everywhereOnExpress],
];

/** A delivery that comes to this path. */
function sentTo(path: string, id: string): Request {
  return new Request(`https://api.example/hooks${path}`, delivery(id));
}

const spellings = ["/bill", "/Bill", "/bill/", "//bill", "/%62ill", "/%42ILL//"];

describe.each(withPattern)("a route of %s", (_name, open) => {
  test("is a handler: each of two that have one secret runs once, and has its own key", async () => {
    const keys: (readonly string[])[] = [];
    const act: Act = (path, webhook) => {
      keys.push(deliveryKey(webhook!, "owner"));
      return `${path} ${keys.length}`;
    };
    const send = await open(["/bill", "/mail"], act, () => ({ provider }));
    const id = freshKey();
    const answers: string[] = [];
    for (const path of ["/bill", "/mail", "/bill", "/mail"]) {
      answers.push(await (await send(sentTo(path, id))).text());
    }
    expect(answers).toEqual(["/bill 1", "/mail 2", "/bill 1", "/mail 2"]);
    expect(keys).toEqual(["/hooks/bill", "/hooks/mail"].map((handler) => ["github", handler, "owner", id]));
  });

  test("may move with the name that it had", async () => {
    let runs = 0;
    const act: Act = () => `${++runs}`;
    const id = freshKey();
    const before = await open(["/bill"], act, () => ({ provider }));
    await before(sentTo("/bill", id));
    const after = await open(["/invoices"], act, () => ({ provider, handler: "/hooks/bill" }));
    expect(await (await after(sentTo("/invoices", id))).text()).toBe("1");
  });
});

describe.each([...withPattern, ...withoutPattern])("%s", (_name, open) => {
  test("runs no captured delivery again, whatever spelling of the path it is sent to", async () => {
    let runs = 0;
    const send = await open(
      ["/bill"],
      () => `${++runs}`,
      () => ({ provider }),
    );
    const id = freshKey();
    const statuses: number[] = [];
    for (const path of spellings) statuses.push((await send(sentTo(path, id))).status);
    expect(runs).toBe(1);
    // Not found, where it is no spelling of the route.
    for (const status of statuses) expect([200, 404]).toContain(status);
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(1);
  });
});

describe.each(withoutPattern)("%s", (_name, open) => {
  test("refuses a delivery that another path has handled, or is handling, and names the option", async () => {
    const events: HttpEvent[] = [];
    const ran: string[] = [];
    const [started, finish] = [gate(), gate()];
    const act: Act = async (path) => {
      ran.push(path);
      started.open();
      await finish.passed;
      return path;
    };
    const options = { provider, onEvent: (event: HttpEvent) => void events.push(event) };
    const send = await open(["/bill", "/mail"], act, () => options);
    const id = freshKey();
    const first = send(sentTo("/bill", id));
    await started.passed;
    const refusals = [await send(sentTo("/mail", id))];
    finish.open();
    await first;
    refusals.push(await send(sentTo("/mail", id)));
    for (const refusal of refusals) {
      expect(await refusal.clone().text()).toMatch(/`handler`/);
      expect(await problemIn(refusal)).toEqual({ status: 500, code: "HANDLER_MISMATCH" });
    }
    expect(await (await send(sentTo("/bill", id))).text()).toBe("/bill");
    expect(ran).toEqual(["/bill"]);
    const refused = events.filter(({ type }) => type === "refused");
    expect(refused).toEqual(
      Array(2).fill(expect.objectContaining({ status: 500, code: "HANDLER_MISMATCH" })),
    );
  });

  test("knows a handler's name: one on two paths is one, and has no other path to be compared", async () => {
    const ran: string[] = [];
    const act: Act = (path) => `${ran.push(path)}`;
    const send = await open(["/bill", "/new"], act, () => ({ provider, handler: "bill" }));
    const id = freshKey();
    for (const path of ["/bill", "/new"]) expect(await (await send(sentTo(path, id))).text()).toBe("1");
    expect(ran).toEqual(["/bill"]);
  });
});

test("two routers of Express with one pattern are told apart by their paths, loudly", async () => {
  const app = express5().set("env", "test");
  const ran: string[] = [];
  for (const base of ["/a", "/b"]) {
    const router = express5.Router();
    router.post("/hook", idempotentExpress(guardOf({ provider })), (_req: Any, res: Any) =>
      res.send(`${ran.push(base)}`),
    );
    app.use(`/hooks${base}`, router);
  }
  const { send, close } = await listen(app);
  closing.push(close);
  const id = freshKey();
  const statuses: number[] = [];
  for (const path of ["/a/hook", "/b/hook", "/A/hook/", "/b/hook"]) {
    statuses.push((await send(sentTo(path, id))).status);
  }
  expect([statuses, ran]).toEqual([[200, 500, 200, 500], ["/a"]]);
});

test("middleware of all routes and of one of them is mounted twice", async () => {
  using _ = vi.spyOn(console, "error").mockReturnValue();
  const guard = idempotent(guardOf({ provider, wait: 0 }));
  const app = new Hono().onError((error, c) => c.text(error.message, 500));
  app.use(guard).post("/hooks/bill", guard, (c) => c.text("x"));
  const answer = await app.fetch(sentTo("/bill", freshKey()));
  expect([answer.status, await answer.text()]).toEqual([500, expect.stringMatching(/mounted twice/)]);
});
