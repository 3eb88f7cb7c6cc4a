import { randomUUID } from "node:crypto";
import type { APIGatewayProxyStructuredResultV2 } from "aws-lambda";
import { describe, expect, it } from "vitest";
import {
  batch,
  contextOf,
  failures,
  loadPayments,
  loadQueue,
  message,
  orders,
  payment,
} from "./lambda-events.ts";
import { staged } from "./stage.ts";

// lambda-deadline.full.test.ts has what happens shortly before Lambda's timeout.

const at = staged();

describe("examples/lambda/payments", () => {
  const load = () => loadPayments(at);
  const textOf = ({ body = "" }: APIGatewayProxyStructuredResultV2) => Buffer.from(body, "base64").toString();

  it("pays once for repeated requests, and once more for another user", async () => {
    const handler = await load();
    const key = randomUUID();
    const first = await handler(payment(key), contextOf());
    expect([first.statusCode, textOf(first)]).toEqual([201, '{"call":1}']);
    expect(first.headers).not.toHaveProperty("idempotent-replayed");
    const second = await handler(payment(key), contextOf());
    expect([second.statusCode, textOf(second)]).toEqual([201, '{"call":1}']);
    expect(second.headers).toMatchObject({ "idempotent-replayed": "true" });
    expect(at.service.calls).toMatchObject([{ body: '{"amount":10}', headers: { "idempotency-key": key } }]);
    await handler(payment(key, undefined, "user-2"), contextOf());
    expect(at.service.calls).toHaveLength(2);
  });
});

describe("examples/lambda/queue", () => {
  const load = () => loadQueue(at);

  it("returns only the message that failed, and ships only that one again", async () => {
    const handler = await load();
    const [good, bad, other] = orders("good", "bad", "other") as [string, string, string];
    at.service.rule = ({ path }) => (path.endsWith(bad) ? 500 : 204);
    const event = batch(message(good), message(bad), message(other));
    expect(failures(await handler(event, contextOf()))).toEqual(["message-2"]);
    at.service.rule = () => 204;
    // The whole batch is delivered again, as after a lost answer.
    expect(failures(await handler(event, contextOf()))).toEqual([]);
    const paths = at.service.calls.map(({ path }) => path).sort();
    expect(paths).toEqual([good, bad, bad, other].map((order) => `/orders/${order}`).sort());
  });

  it("returns a message that cannot be parsed", async () => {
    const handler = await load();
    at.service.rule = () => 204;
    const answer = await handler(batch("no JSON", ...orders("good").map(message)), contextOf());
    expect(failures(answer)).toEqual(["message-1"]);
    expect(at.service.calls).toHaveLength(1);
  });
});
