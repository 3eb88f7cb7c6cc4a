import { randomUUID } from "node:crypto";
import type { Context, SQSBatchResponse } from "aws-lambda";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { signedDelivery } from "../../src/testing/index.ts";
import { qstash } from "../../src/webhooks/index.ts";
import { type Delivery, stripeDelivery } from "../../tools/deliveries.mjs";
import { importInNode } from "./bundle.ts";
import { lambdaEvent } from "./lambda-event.ts";
import { staged } from "./stage.ts";

// The queues' examples on Node, one request at a time. cloudflare.long.test.ts kills such programs at each step.

const at = staged();
const secret = "whsec_of-the-sender";
const env = () => ({ ...at.local.env(), WAREHOUSE_URL: at.service.url });
const context = (ms = 30_000) => ({ getRemainingTimeInMillis: () => ms }) as Context;
const post = (url: string, { headers, body }: Pick<Delivery, "headers" | "body">) =>
  new Request(url, { method: "POST", headers, body });

interface OnVercel {
  POST(request: Request): Promise<Response>;
}
type OnLambda<Result> = { handler(event: object, context: Context): Promise<Result> };

/** By example: starts the receiver, whose queue is the service. */
const receivers: Record<string, () => Promise<(delivery: Delivery) => Promise<number>>> = {
  async "queue-qstash/api/stripe.ts"() {
    const queue = {
      QSTASH_URL: at.service.url,
      QSTASH_TOKEN: "token",
      SHIP_URL: "https://shop.example/ship",
    };
    const settings = { ...env(), ...queue, STRIPE_WEBHOOK_SECRET: secret };
    const { POST } = await importInNode<OnVercel>("queue-qstash/api/stripe.ts", settings);
    return async (delivery) => (await POST(post("https://shop.example/", delivery))).status;
  },
  async "queue-sqs/receive.ts"() {
    const settings = { ...env(), QUEUE_URL: at.service.url, STRIPE_WEBHOOK_SECRET: secret };
    const alias = { "@aws-sdk/client-sqs": "./test/examples/queues/sqs-sdk.ts" };
    type Handler = OnLambda<{ statusCode: number }>;
    const { handler } = await importInNode<Handler>("queue-sqs/receive.ts", settings, { alias });
    return async (delivery) => (await handler(lambdaEvent(delivery), context())).statusCode;
  },
};

/** What fails is told to operators. */
function quiet() {
  const logged = vi.spyOn(console, "error").mockReturnValue();
  onTestFinished(() => logged.mockRestore());
  return logged;
}

it.each(Object.entries(receivers))(
  "examples/%s answers 202 when the queue has the event, and sends it once",
  async (_, start) => {
    const deliver = await start();
    const order = randomUUID();
    quiet();
    const event = (type: string) => stripeDelivery(secret, type, { id: order }, `evt_${type}_${order}`);
    at.service.rule = () => 500;
    expect(await deliver(event("checkout.session.completed"))).toBeGreaterThanOrEqual(500);
    at.service.rule = () => 201;
    for (let times = 0; times < 2; times += 1) {
      expect(await deliver(event("checkout.session.completed"))).toBe(202);
    }
    expect(await deliver(event("invoice.paid"))).toBe(204);
    const message = { event: `evt_checkout.session.completed_${order}`, order };
    expect(at.service.calls.map(({ body }) => JSON.parse(body))).toEqual([message, message]);
  },
);

describe("examples/queue-qstash/api/ship.ts", () => {
  const url = "https://shop.example/api/ship";
  const keys = { QSTASH_CURRENT_SIGNING_KEY: "sig_current", QSTASH_NEXT_SIGNING_KEY: "sig_next" };
  async function start() {
    const { POST } = await importInNode<OnVercel>("queue-qstash/api/ship.ts", {
      ...env(),
      ...keys,
      SHIP_URL: url,
    });
    const order = randomUUID();
    return async (key = "sig_current") => {
      const options = { secret: key, name: "qstash", id: "body", url } as const;
      const delivery = await signedDelivery(qstash, options, { body: { event: `evt_${order}`, order } });
      return POST(post(url, delivery));
    };
  }

  it("tells a second delivery to come later while the first is under way, and ships once", async () => {
    const deliver = await start();
    at.service.rule = () => undefined;
    const first = deliver();
    const call = await at.service.next();
    const second = await deliver();
    expect(second.status).toBe(503);
    expect(Number(second.headers.get("retry-after"))).toBeGreaterThan(0);
    call.answer(201);
    expect((await first).status).toBe(204);
    expect((await deliver("sig_next")).status).toBe(204);
    expect(at.service.calls.map(({ headers }) => headers["idempotency-key"])).toEqual([
      expect.stringMatching(/^evt_/),
    ]);
  });

  it("is called again after a failure, and not after a refusal for good", async () => {
    const deliver = await start();
    const answers: unknown[] = [];
    for (const status of [500, 422]) {
      at.service.rule = () => status;
      const { status: answered, headers } = await deliver();
      answers.push([answered, headers.get("upstash-nonretryable-error")]);
    }
    expect(answers).toEqual([
      [502, null],
      [489, "true"],
    ]);
  });
});

describe("examples/queue-sqs/ship.ts", () => {
  async function start() {
    const { handler } = await importInNode<OnLambda<SQSBatchResponse>>("queue-sqs/ship.ts", env());
    /** Delivers a batch. @returns the numbers of the messages that failed */
    return async (bodies: readonly string[], ms?: number) => {
      const records = bodies.map((body, index) => ({ messageId: `${index + 1}`, body }));
      const { batchItemFailures } = await handler({ Records: records }, context(ms));
      return batchItemFailures.map(({ itemIdentifier }) => Number(itemIdentifier));
    };
  }
  const about = (order: string) => JSON.stringify({ event: `evt_${order}`, order });
  it("returns only the messages that failed, and ships only those again", async () => {
    const deliver = await start();
    const [good, bad] = [`good-${randomUUID()}`, `bad-${randomUUID()}`];
    const batch = [about(good), about(bad), "no JSON"];
    const logged = quiet();
    // Nothing is begun that cannot end before Lambda's timeout.
    expect(await deliver(batch, 1_000)).toEqual([1, 2, 3]);
    expect(at.service.calls).toEqual([]);
    at.service.rule = ({ body }) => (body.includes(bad) ? 500 : 204);
    logged.mockClear();
    expect(await deliver(batch)).toEqual([2, 3]);
    expect(logged.mock.calls).toEqual([
      ["2", expect.objectContaining({ message: `order ${bad}: the warehouse answered 500` })],
      ["3", expect.any(SyntaxError)],
    ]);
    at.service.rule = () => 204;
    // The whole batch is delivered again, as after a lost answer.
    expect(await deliver(batch)).toEqual([3]);
    const keys = at.service.calls.map(({ headers }) => headers["idempotency-key"]);
    expect(keys.sort()).toEqual([`evt_${bad}`, `evt_${bad}`, `evt_${good}`]);
  });

  it("returns a second delivery as failed while the first is under way", async () => {
    const deliver = await start();
    const batch = [about(randomUUID())];
    quiet();
    at.service.rule = () => undefined;
    const first = deliver(batch);
    const call = await at.service.next();
    expect(await deliver(batch)).toEqual([1]);
    call.answer(201);
    expect([await first, await deliver(batch)]).toEqual([[], []]);
    expect(at.service.calls).toHaveLength(1);
  });
});
