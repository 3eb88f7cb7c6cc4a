import { describe, expect, test, vi } from "vitest";
import type { HttpEvent } from "../../src/http/index.ts";
import { recordText } from "../../src/idempotency/record.ts";
import { freshKey } from "../support/fresh-key.ts";
import { gate } from "../support/link.ts";
import { allArrived, clientOf, recordName, recordsOf } from "../support/stores.ts";
import { until } from "../support/until.ts";
import {
  type Any,
  type App,
  closeApps,
  fetching,
  type Open,
  type Options,
  onHono,
  onNest,
  type Route,
  withMiddleware,
} from "./frameworks.ts";
import { delivery, opened, post, problemIn, provider, seen } from "./stand.ts";

// What every framework does: how often a handler acts, what its clients get, and what middleware further out knows.

const at = opened();
closeApps();

/** An app with a handler for payments and deliveries, guarded with these options. */
const opener =
  (open: Open) =>
  (route: Route, options: Partial<Options>, outer: Pick<App, "watch" | "isTwice"> = {}) => {
    const guard = { redlock: at.client.redlock, handler: "pay", onEvent: () => undefined, ...options };
    return open({ route, guards: { "/payments": guard, "/hook": guard }, ...outer });
  };
const inJson = { headers: { "content-type": "application/json" } };
const paid: Route = async () => ({ json: { paid: true } });

describe.each<readonly [name: string, framework: { readonly open: Open }]>([
  ["a function of a request", { open: fetching }],
  ...withMiddleware,
])("%s", (_name, framework) => {
  const open = opener(framework.open);

  test("five deliveries act once, and a forged one does not", async () => {
    const started = gate();
    const finish = gate();
    let runs = 0;
    const route: Route = async ({ idempotency, webhook, body }) => {
      runs += 1;
      started.open();
      await finish.passed;
      return { json: { runs, key: idempotency?.key, id: webhook?.id, body } };
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
      return { json: { key: idempotency?.key } };
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

  test("a run that was overtaken has the other's answer, if there is one, and none of its own headers", async () => {
    const other = { token: "tother", fingerprint: "-" };
    const result = 't202{"content-type":"text/plain"}\ntheirs';
    for (const [record, status, body] of [
      [
        recordText({ state: "pending", ...other, at: Date.now() }),
        409,
        expect.stringContaining("LEASE_LOST"),
      ],
      [recordText({ state: "complete", ...other, at: Date.now(), result }), 202, "theirs"],
    ] as const) {
      const key = freshKey();
      const send = await open(async () => {
        await allArrived(at.client.links);
        await at.store.execute(0, ["SET", await recordName(key, [], "http", "pay"), record]);
        const ofBrowsers = { "access-control-allow-headers": "x-a" };
        return { json: { mine: true }, headers: { "x-mine": "1", "x-outer": "mine", ...ofBrowsers } };
      }, {});
      const answer = await send(post(key, { headers: { ...inJson.headers, origin: "https://a.example" } }));
      expect([answer.status, await answer.text()]).toEqual([status, body]);
      expect(answer.headers.has("x-mine")).toBe(false);
      if (framework.open === fetching) continue;
      expect(answer.headers.get("access-control-allow-origin")).toBe("https://a.example");
      expect(answer.headers.get("access-control-allow-headers")).toBe("x-a");
      expect(answer.headers.get("vary")).toMatch(/origin/i);
      if (framework.open !== onHono) expect(answer.headers.get("x-outer")).toBe("https://a.example");
    }
  });

  test("with failOpen and without a store, or without a key that is required, the handler runs unprotected", async () => {
    const down = clientOf(at.store);
    for (const link of down.links) link.fate = () => "refused";
    const events: string[] = [];
    const send = await open(async ({ idempotency, body }) => ({ json: { run: !!idempotency, body } }), {
      redlock: down.redlock,
      failOpen: true,
      required: false,
      onEvent: ({ type }: HttpEvent) => events.push(type),
    });
    for (const key of [freshKey(), null]) {
      const answer = await send(post(key, inJson));
      expect([answer.status, await answer.json()]).toEqual([201, { run: false, body: '{"amount":10}' }]);
    }
    expect(events).toEqual(["unguarded"]);
  });
});

describe.each(withMiddleware)("middleware of %s", (_name, framework) => {
  const open = opener(framework.open);

  test("further out has its headers on every answer, each request its own", async () => {
    const send = await open(async () => ({ json: {}, headers: { "x-of": "handler" } }), {});
    const key = freshKey();
    const origins = ["https://a.example", "https://b.example", "https://c.example"];
    const answers: Response[] = [];
    for (const [index, origin] of origins.entries()) {
      const headers = { ...inJson.headers, origin };
      answers.push(await send(post(index < 2 ? key : null, { headers })));
    }
    const named = (name: string) => answers.map(({ headers }) => headers.get(name));
    expect(named("idempotent-replayed")).toEqual([null, "true", null]);
    expect(named("x-of")).toEqual(["handler", "handler", null]);
    expect(named("x-outer")).toEqual(origins);
    expect(named("access-control-allow-origin")).toEqual(origins);
  });

  test("further out knows how each request was answered, and every delivery that is genuine", async () => {
    const known: unknown[] = [];
    const watch: App["watch"] = ({ idempotency, webhook }) => known.push([idempotency?.status, webhook?.id]);
    const statuses = [500, 201];
    const send = await open(
      async () => ({ json: {} }),
      { provider, wait: 0, store: () => statuses.shift() === 201 },
      { watch },
    );
    const id = freshKey();
    for (const signedWith of [undefined, undefined, undefined, "another"]) {
      const before = known.length;
      await (await send(delivery(id, signedWith ? { signedWith } : {}))).text();
      await until(() => known.length > before);
    }
    expect(known).toEqual([
      ["failed", id],
      ["executed", id],
      [undefined, id],
      [undefined, undefined],
    ]);
  });

  test("has options that are functions of the request, and with a lock a fence", async () => {
    const tenantOf = (context: Any) => framework.headerOf(context, "x-tenant");
    const send = await open(async ({ idempotency }) => ({ json: { ...idempotency } }), {
      redlock: async () => at.client.redlock,
      scope: async (context: Any) => ["tenant", tenantOf(context)],
      lock: (context: Any) => `account:${tenantOf(context)}`,
    });
    const key = freshKey();
    const fences: number[] = [];
    for (const tenant of ["a", "b", "a"]) {
      const answer = await send(post(key, { headers: { ...inJson.headers, "x-tenant": tenant } }));
      expect(answer.status).toBe(201);
      fences.push((await answer.json()).fence);
    }
    expect(fences[0]).toBeGreaterThan(0);
    expect(fences[2]).toBe(fences[0]);
    expect(await recordsOf(at.store, key, ["tenant", "b"], "http", "pay")).toEqual([
      expect.stringMatching(/^C1 /),
    ]);
  });

  test("is mounted once: twice is an error that says so, and the key is free", async () => {
    using _ = vi.spyOn(console, "error").mockReturnValue();
    const send = await open(paid, { wait: 0 }, { isTwice: true });
    const key = freshKey();
    const answer = await send(post(key, inJson));
    expect(answer.status).toBe(500);
    // Nest does not tell its clients.
    if (framework.open !== onNest) expect(await answer.text()).toMatch(/mounted twice on this route/);
    await until(async () => (await recordsOf(at.store, key, [], "http", "pay"))[0] === null);
  });
});
