import { createHmac, randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { loadOnTheEdge, type OnTheEdge } from "./bundle.ts";
import { staged } from "./stage.ts";

const at = staged();

/** A request of the Edge runtime's own class, not of Node's. */
function request({ vm }: OnTheEdge, url: string, init: RequestInit): Request {
  return new (vm.context.Request as typeof Request)(url, init);
}

describe("examples/vercel-edge", () => {
  const secret = "whsec_example";
  const load = () =>
    loadOnTheEdge("vercel-edge/api/stripe.ts", "@vercel/functions", {
      ...at.stage.local.env(),
      STRIPE_WEBHOOK_SECRET: secret,
      ORDERS_URL: at.service.url,
    });

  /** A delivery as Stripe sends it; each attempt is signed anew. */
  function delivery(on: OnTheEdge, id: string): Request {
    const body = JSON.stringify({
      id,
      type: "checkout.session.completed",
      data: { object: { id: `cs_${id}` } },
    });
    const time = Math.floor(Date.now() / 1_000);
    const signature = createHmac("sha256", secret).update(`${time}.${body}`).digest("hex");
    const headers = { "stripe-signature": `t=${time},v1=${signature}` };
    return request(on, "https://shop.example/api/stripe", { method: "POST", headers, body });
  }

  it("fulfils an event once, and replays the answer", async () => {
    const on = await load();
    expect(on.vm.evaluate("[globalThis.EdgeRuntime, typeof require, typeof Buffer].join()")).toBe(
      "edge-runtime,undefined,undefined",
    );
    const id = `evt_${randomUUID()}`;
    const first = await on.POST(delivery(on, id));
    expect([first.status, first.headers.get("idempotent-replayed")]).toEqual([204, null]);
    const second = await on.POST(delivery(on, id));
    expect([second.status, second.headers.get("idempotent-replayed")]).toEqual([204, "true"]);
    expect(at.service.calls).toMatchObject([{ method: "PUT", path: `/cs_${id}` }]);
  });

  it("passes the whole run to waitUntil, so that it completes after the client has disconnected", async () => {
    const on = await load();
    const id = `evt_${randomUUID()}`;
    at.service.rule = () => undefined;
    const first = on.POST(delivery(on, id));
    const call = await at.service.next();
    expect(on.work.length).toBeGreaterThan(0);
    // Nothing awaits the response any more. The platform awaits only the promises passed to waitUntil.
    const background = Promise.all(on.work);
    call.answer(204, "");
    await background;
    const again = await (await load()).POST(delivery(on, id));
    expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([204, "true"]);
    expect((await first).status).toBe(204);
    expect(at.service.calls).toHaveLength(1);
  });
});

describe("examples/next", () => {
  const load = () =>
    loadOnTheEdge("next/app/api/payments/route.ts", "next/server", {
      ...at.stage.local.env(),
      API_KEYS: JSON.stringify({ "key-of-acme": "acme", "key-of-globex": "globex" }),
      LEDGER_URL: at.service.url,
    });

  function payment(on: OnTheEdge, key: string, apiKey = "key-of-acme"): Request {
    return request(on, "https://shop.example/api/payments", {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "idempotency-key": key },
      body: '{"amount":10}',
    });
  }

  it("can be loaded without any variable, as `next build` does", async () => {
    const { vm } = await loadOnTheEdge("next/app/api/payments/route.ts", "next/server", {});
    expect(vm.evaluate("example.maxDuration")).toBe(20);
  });

  it("pays once per key and account", async () => {
    const on = await load();
    const key = randomUUID();
    const first = await on.POST(payment(on, key));
    expect([first.status, await first.json()]).toEqual([201, { call: 1 }]);
    const second = await on.POST(payment(on, key));
    expect([second.status, await second.json()]).toEqual([201, { call: 1 }]);
    expect(second.headers.get("idempotent-replayed")).toBe("true");
    const other = await on.POST(payment(on, key, "key-of-globex"));
    expect([other.status, await other.json()]).toEqual([201, { call: 2 }]);
    expect((await on.POST(payment(on, key, "constructor"))).status).toBe(401);
    expect(at.service.calls).toHaveLength(2);
  });
});
