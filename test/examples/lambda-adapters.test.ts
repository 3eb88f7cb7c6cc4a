import { createHmac } from "node:crypto";
import middy from "@middy/core";
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2, Context } from "aws-lambda";
import { expect, it } from "vitest";
import { withLock } from "../../examples/lambda-middy/lock.ts";
import { endpointsFromEnv, type FencedLock, Redlock } from "../../src/index.ts";
import { importInNode } from "./bundle.ts";
import { contextOf } from "./lambda-events.ts";
import { staged } from "./stage.ts";

const at = staged();

/** A delivery of Stripe as the event of an HTTP API. */
function delivery(body: string, secret: string): APIGatewayProxyEventV2 {
  const time = Math.floor(Date.now() / 1_000);
  const signature = createHmac("sha256", secret).update(`${time}.${body}`).digest("hex");
  return {
    version: "2.0",
    routeKey: "$default",
    rawPath: "/webhooks/stripe",
    rawQueryString: "",
    headers: { "stripe-signature": `t=${time},v1=${signature}` },
    requestContext: { domainName: "shop.example", http: { method: "POST", path: "/webhooks/stripe" } },
    body: Buffer.from(body).toString("base64"),
    isBase64Encoded: true,
  } as unknown as APIGatewayProxyEventV2;
}

it("examples/lambda-hono handles a delivery once", async () => {
  type Handler = (
    event: APIGatewayProxyEventV2,
    context: Context,
  ) => Promise<APIGatewayProxyStructuredResultV2>;
  const env = { ...at.stage.local.env(), STRIPE_WEBHOOK_SECRET: "whsec_hush" };
  const { handler } = await importInNode<{ handler: Handler }>("lambda-hono/webhook.ts", env);
  const deliver = () => handler(delivery('{"id":"evt_1"}', "whsec_hush"), contextOf());
  const [first, second] = [await deliver(), await deliver()];
  expect(first).toMatchObject({ statusCode: 200, body: expect.stringContaining("evt_1") });
  expect(second.body).toBe(first.body);
  expect(second.headers).toMatchObject({ "idempotent-replayed": "true" });
});

it("examples/lambda-middy runs one handler of a name at a time, and releases after a failure", async () => {
  const redlock = new Redlock({
    endpoints: endpointsFromEnv(at.stage.local.env()),
    timeout: 20_000,
    ttl: 60_000,
  });
  const handler = middy()
    .use(withLock<{ invoice: string; fails: boolean }>(redlock, ({ invoice }) => invoice))
    .handler(async ({ fails }, context: Context & { lock?: FencedLock }) => {
      expect(await redlock.tryAcquire("42")).toBe(null);
      if (fails) throw new Error("no");
      return context.lock!.fence;
    });
  const invoke = (fails: boolean) => handler({ invoice: "42", fails }, contextOf());
  const [failed, ...fences] = await Promise.allSettled([invoke(true), invoke(false), invoke(false)]);
  expect(failed).toMatchObject({ status: "rejected", reason: { message: "no" } });
  expect(new Set(fences.map((each) => each.status === "fulfilled" && each.value)).size).toBe(2);
  expect(fences).toMatchObject([{ status: "fulfilled" }, { status: "fulfilled" }]);
});
