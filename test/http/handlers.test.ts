import express5 from "express";
import { Hono } from "hono";
import { describe, expect, test, vi } from "vitest";
import { idempotent } from "../../src/hono/index.ts";
import type { Delivery, HttpEvent } from "../../src/http/index.ts";
import { deliveryKey } from "../../src/inbox/index.ts";
import { idempotentExpress } from "../../src/node/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { gate } from "../support/link.ts";
import { type Any, closeApps, fetching, type Open, type Options, served, withPattern } from "./frameworks.ts";
import { delivery, opened, problemIn, provider } from "./stand.ts";

// Several handlers behind one secret: what is one thing to be done, and what are two.

/** What the handler of a path does, and its answer. */
type Act = (path: string, webhook: Delivery | undefined) => Promise<string> | string;

const at = opened();
closeApps();

const guardOf = (options: Partial<Options>) => ({
  redlock: at.client.redlock,
  onEvent: () => undefined,
  ...options,
});
/** Serves paths, each by a handler of its own. */
const serving = (open: Open, paths: readonly string[], act: Act, options: Partial<Options> = { provider }) =>
  open({
    route: async ({ path, webhook }) => ({ json: { said: await act(path.replace("/hooks", ""), webhook) } }),
    guards: Object.fromEntries(paths.map((path) => [`/hooks${path}`, guardOf(options)])),
  });
const said = async (answer: Response) => (await answer.json()).said;

/** Middleware for all routes, which knows no pattern. */
const everywhereOnHono: Open = ({ route, guards }) => {
  const app = new Hono().use(idempotent(Object.values(guards)[0]!));
  app.post("*", async (c) => {
    const given = { path: c.req.path, webhook: c.get("webhook" as never), body: "" };
    return c.json((await route(given)).json);
  });
  return async (request) => app.fetch(request);
};
const everywhereOnExpress: Open = ({ route, guards }) => {
  const app = express5().set("env", "test");
  app.use(idempotentExpress(Object.values(guards)[0]!) as Any);
  app.use(async ({ path, webhook }: Any, res: Any) =>
    res.json((await route({ path, webhook, body: "" })).json),
  );
  return served(app);
};

const withoutPattern: readonly (readonly [name: string, framework: { readonly open: Open }])[] = [
  ["a function of a request", { open: fetching }],
  ["middleware of all routes of Hono", { open: everywhereOnHono }],
  ["middleware of all routes of Express", { open: everywhereOnExpress }],
];

/** A delivery that comes to this path. */
function sentTo(path: string, id: string): Request {
  return new Request(`https://api.example/hooks${path}`, delivery(id));
}

const spellings = ["/bill", "/Bill", "/bill/", "//bill", "/%62ill", "/%42ILL//"];

describe.each(withPattern)("a route of %s", (_name, { open }) => {
  test("is a handler: each of two that have one secret runs once, and has its own key", async () => {
    const keys: (readonly string[])[] = [];
    const act: Act = (path, webhook) => {
      keys.push(deliveryKey(webhook!, "owner"));
      return `${path} ${keys.length}`;
    };
    const send = await serving(open, ["/bill", "/mail"], act);
    const id = freshKey();
    const answers: string[] = [];
    for (const path of ["/bill", "/mail", "/bill", "/mail"]) {
      answers.push(await said(await send(sentTo(path, id))));
    }
    expect(answers).toEqual(["/bill 1", "/mail 2", "/bill 1", "/mail 2"]);
    expect(keys).toEqual(["/hooks/bill", "/hooks/mail"].map((handler) => ["github", handler, "owner", id]));
  });

  test("may move with the name that it had", async () => {
    let runs = 0;
    const act: Act = () => `${++runs}`;
    const id = freshKey();
    const before = await serving(open, ["/bill"], act);
    await before(sentTo("/bill", id));
    const after = await serving(open, ["/invoices"], act, { provider, handler: "/hooks/bill" });
    expect(await said(await after(sentTo("/invoices", id)))).toBe("1");
  });
});

describe.each<readonly [name: string, framework: { readonly open: Open }]>([
  ...withPattern,
  ...withoutPattern,
])("%s", (_name, { open }) => {
  test("runs no captured delivery again, whatever spelling of the path it is sent to", async () => {
    let runs = 0;
    const send = await serving(open, ["/bill"], () => `${++runs}`);
    const id = freshKey();
    const statuses: number[] = [];
    for (const path of spellings) statuses.push((await send(sentTo(path, id))).status);
    expect(runs).toBe(1);
    // Not found, where it is no spelling of the route.
    for (const status of statuses) expect([200, 201, 404]).toContain(status);
    expect(statuses.filter((status) => status !== 404).length).toBeGreaterThan(1);
  });
});

describe.each(withoutPattern)("%s", (_name, { open }) => {
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
    const send = await serving(open, ["/bill", "/mail"], act, options);
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
    expect(await said(await send(sentTo("/bill", id)))).toBe("/bill");
    expect(ran).toEqual(["/bill"]);
    const refused = events.filter(({ type }) => type === "refused");
    expect(refused).toEqual(
      Array(2).fill(expect.objectContaining({ status: 500, code: "HANDLER_MISMATCH" })),
    );
  });

  test("knows a handler's name: one on two paths is one, and has no other path to be compared", async () => {
    const ran: string[] = [];
    const act: Act = (path) => `${ran.push(path)}`;
    const send = await serving(open, ["/bill", "/new"], act, { provider, handler: "bill" });
    const id = freshKey();
    for (const path of ["/bill", "/new"]) expect(await said(await send(sentTo(path, id)))).toBe("1");
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
  const send = await served(app);
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
