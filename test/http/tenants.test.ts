import { createHmac } from "node:crypto";
import { type Context, Hono } from "hono";
import { describe, expect, test } from "vitest";
import { idempotent } from "../../src/hono/index.ts";
import { type HttpEvent, withIdempotency } from "../../src/http/index.ts";
import { inspectKey } from "../../src/idempotency/index.ts";
import { secretTag, stripe } from "../../src/webhooks/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { forbidUnhandledRejections } from "../support/unhandled.ts";
import { opened, stores } from "./stand.ts";

// Senders with secrets of their own, whose providers are made for each request, and secrets that are rotated.

function event(id: string, secret: string, of = "something"): Request {
  const body = JSON.stringify({ id, of });
  const seconds = Math.floor(Date.now() / 1_000);
  const signature = createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex");
  const headers = { "stripe-signature": `t=${seconds},v1=${signature}` };
  return new Request("https://a.example/hook", { method: "POST", body, headers });
}

describe.each(stores)("secrets on $title", ({ open }) => {
  forbidUnhandledRejections();
  const at = opened({ open });

  /** An instance that accepts these secrets. */
  function instance(secret: string | string[]) {
    const events: HttpEvent[] = [];
    const onEvent = (event: HttpEvent) => events.push(event);
    const options = { redlock: at.client.redlock, provider: stripe({ secret }), onEvent };
    const run = (request: Request, handler: () => Response) => withIdempotency(request, handler, options);
    return { run, events };
  }

  test("of two tenants: neither can use up the other's events", async () => {
    const secrets: Record<string, string> = { a: "whsec_of_a", b: "whsec_of_b" };
    const ran: string[] = [];
    const provider = (c: Context) => stripe({ secret: secrets[c.req.param("tenant")!]! });
    const app = new Hono().post(
      "/hooks/:tenant",
      idempotent({ redlock: at.client.redlock, provider }),
      async (c) => {
        const { of } = await c.req.json();
        ran.push(of);
        return c.text(of);
      },
    );
    const id = freshKey();
    const send = (tenant: string, of: string) =>
      app.fetch(new Request(`https://a.example/hooks/${tenant}`, event(id, secrets[tenant]!, of)));
    // a knows the id of an event of b, and signs it with a secret of its own.
    for (const [tenant, of] of [
      ["a", "forged by a"],
      ["b", "b's"],
      ["b", "b's again"],
      ["a", "forged again"],
    ] as const) {
      expect((await send(tenant, of)).status).toBe(200);
    }
    expect(ran).toEqual(["forged by a", "b's"]);
    // A run of a's that fails, or is under way, changes nothing of it either.
    const { state } = await inspectKey(at.client.idempotency, id, {
      kind: "http",
      handler: "/hooks/:tenant",
      scope: ["stripe", await secretTag("whsec_of_b")],
    });
    expect(state).toBe("complete");
  });

  test("that are rotated keep their events: instances with old, both and new meet", async () => {
    const [before, during, reversed, after] = [
      instance("whsec_old"),
      instance(["whsec_new", "whsec_old"]),
      instance(["whsec_old", "whsec_new"]),
      instance("whsec_new"),
    ];
    const run = async (where: typeof before, id: string, secret: string, ran: string) => {
      const response = await where.run(event(id, secret), () => new Response(ran));
      return [await response.text(), response.headers.get("idempotent-replayed")];
    };
    const [first, second] = [freshKey(), freshKey()];
    expect(await run(before, first, "whsec_old", "first")).toEqual(["first", null]);
    for (const where of [during, reversed]) {
      for (const secret of ["whsec_old", "whsec_new"]) {
        expect(await run(where, first, secret, "twice")).toEqual(["first", "true"]);
      }
    }
    expect(await run(during, second, "whsec_new", "second")).toEqual(["second", null]);
    expect(await run(reversed, second, "whsec_old", "twice")).toEqual(["second", "true"]);
    expect(await run(after, second, "whsec_new", "twice")).toEqual(["second", "true"]);
    // One event for each request, however many runs it took.
    const replayed = ["replayed", "replayed"];
    expect([before, during, reversed, after].map(({ events }) => events.map(({ type }) => type))).toEqual([
      ["executed"],
      [...replayed, "executed"],
      [...replayed, "replayed"],
      ["replayed"],
    ]);
  });
});
