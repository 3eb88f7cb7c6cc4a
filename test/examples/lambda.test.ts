import { randomUUID } from "node:crypto";
import type {
  APIGatewayProxyEventV2WithJWTAuthorizer,
  APIGatewayProxyStructuredResultV2,
  Context,
  SQSBatchResponse,
  SQSEvent,
} from "aws-lambda";
import { describe, expect, it } from "vitest";
import { rejection } from "../support/outcomes.ts";
import { until } from "../support/until.ts";
import { bundleForNode, importInNode } from "./bundle.ts";
import { startNode } from "./node-process.ts";
import { staged } from "./stage.ts";

const at = staged();

/** Lambda's context of an invocation with `ms` remaining. */
function contextOf(ms = 30_000): Context {
  const end = Date.now() + ms;
  return { getRemainingTimeInMillis: () => end - Date.now() } as Context;
}

describe("examples/lambda/payments", () => {
  type Handler = (
    event: APIGatewayProxyEventV2WithJWTAuthorizer,
    context: Context,
  ) => Promise<APIGatewayProxyStructuredResultV2>;
  const load = async () =>
    (
      await importInNode<{ handler: Handler }>("lambda/payments.ts", {
        ...at.stage.local.env(),
        LEDGER_URL: at.service.url,
      })
    ).handler;

  function payment(key: string | undefined, body = '{"amount":10}', user = "user-1") {
    return {
      version: "2.0",
      rawPath: "/payments",
      rawQueryString: "",
      headers: { "content-type": "application/json", ...(key && { "idempotency-key": key }) },
      requestContext: {
        domainName: "api.example",
        http: { method: "POST", path: "/payments" },
        authorizer: { jwt: { claims: { sub: user } } },
      },
      body: Buffer.from(body).toString("base64"),
      isBase64Encoded: true,
    } as unknown as APIGatewayProxyEventV2WithJWTAuthorizer;
  }

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

  it("stores the result before it answers, because Lambda may freeze after that", async () => {
    const handler = await load();
    const key = randomUUID();
    await handler(payment(key), contextOf());
    expect(Math.min(...(await at.stage.recordTtls(key, "user-1")))).toBeGreaterThan(60_000);
  });

  it("answers 409 while the first is under way, also from another instance", async () => {
    const key = randomUUID();
    at.service.rule = () => undefined;
    const first = (await load())(payment(key), contextOf());
    const call = await at.service.next();
    const second = await (await load())(payment(key), contextOf());
    expect(second.statusCode).toBe(409);
    expect(Number(second.headers?.["retry-after"])).toBeGreaterThan(0);
    call.answer(201);
    expect((await first).statusCode).toBe(201);
    expect(at.service.calls).toHaveLength(1);
  });

  it("ends before Lambda's timeout, aborts the request to the ledger and frees the key", async () => {
    const handler = await load();
    const key = randomUUID();
    const context = contextOf(6_500);
    at.service.rule = () => undefined;
    const failed = handler(payment(key), context);
    const call = await at.service.next();
    expect(await rejection(failed)).toMatchObject({ code: "LEASE_LOST" });
    expect(context.getRemainingTimeInMillis()).toBeGreaterThan(0);
    await until(() => call.aborted, "the request to the ledger to be aborted");
    expect(await at.stage.recordTtls(key, "user-1")).toEqual([-2, -2, -2]);
    at.service.rule = () => 201;
    expect((await handler(payment(key), contextOf())).statusCode).toBe(201);
  });
});

describe("examples/lambda/queue", () => {
  const queue = "arn:aws:sqs:eu-central-1:123456789012:orders";
  type Handler = (event: SQSEvent, context: Context) => Promise<SQSBatchResponse>;
  const load = async () =>
    (
      await importInNode<{ handler: Handler }>("lambda/queue.ts", {
        ...at.stage.local.env(),
        WAREHOUSE_URL: at.service.url,
      })
    ).handler;

  /** A batch of messages; `message-1` is the first. */
  function batch(...bodies: string[]): SQSEvent {
    const records = bodies.map((body, index) => ({
      messageId: `message-${index + 1}`,
      body,
      eventSource: "aws:sqs",
      eventSourceARN: queue,
    }));
    return { Records: records } as unknown as SQSEvent;
  }
  const message = (order: string) => JSON.stringify({ order });
  const failures = ({ batchItemFailures }: SQSBatchResponse) =>
    batchItemFailures.map(({ itemIdentifier }) => itemIdentifier);
  const orders = (...names: string[]) => names.map((name) => `${name}-${randomUUID()}`);

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

  it("returns a message that another instance is processing, so that it is delivered again", async () => {
    const [busy, free] = orders("busy", "free") as [string, string];
    at.service.rule = ({ path }) => (path.endsWith(busy) ? undefined : 204);
    const first = (await load())(batch(message(busy)), contextOf());
    const call = await at.service.next();
    const second = await load();
    expect(failures(await second(batch(message(busy), message(free)), contextOf()))).toEqual(["message-1"]);
    call.answer(204, "");
    expect(failures(await first)).toEqual([]);
    expect(failures(await second(batch(message(busy)), contextOf()))).toEqual([]);
    expect(at.service.calls.filter(({ path }) => path.endsWith(busy))).toHaveLength(1);
  });

  it("ships an order of two messages once", async () => {
    const handler = await load();
    const [order] = orders("twice") as [string];
    at.service.rule = () => 204;
    // In one batch the second may find the first in progress. Then it is delivered again.
    const twice = batch(message(order), message(order));
    expect(failures(await handler(twice, contextOf())).length).toBeLessThanOrEqual(1);
    expect(failures(await handler(twice, contextOf()))).toEqual([]);
    expect(at.service.calls).toHaveLength(1);
  });

  it("returns a slow message before Lambda's timeout, frees its key, and keeps the others", async () => {
    const handler = await load();
    const [slow, quick] = orders("slow", "quick") as [string, string];
    const context = contextOf(6_500);
    at.service.rule = ({ path }) => (path.endsWith(slow) ? undefined : 204);
    expect(failures(await handler(batch(message(slow), message(quick)), context))).toEqual(["message-1"]);
    expect(context.getRemainingTimeInMillis()).toBeGreaterThan(0);
    expect(await at.stage.recordTtls(slow, queue, "run")).toEqual([-2, -2, -2]);
    expect(Math.min(...(await at.stage.recordTtls(quick, queue, "run")))).toBeGreaterThan(60_000);
  });

  it("does not ship a crashed invocation's order during the lease, and ships it afterwards", async () => {
    const [order] = orders("crashed") as [string];
    at.service.rule = () => undefined;
    const invoke = `
      const { handler } = await import(process.argv[1]);
      await handler(JSON.parse(process.argv[2]), { getRemainingTimeInMillis: () => 600_000 });`;
    const instance = startNode(
      [
        "--input-type=module",
        "-e",
        invoke,
        await bundleForNode("lambda/queue.ts"),
        JSON.stringify(batch(message(order))),
      ],
      { ...at.stage.local.env(), WAREHOUSE_URL: at.service.url },
    );
    await at.service.next();
    instance.kill("SIGKILL");
    expect(await instance.ended).toBe("SIGKILL");
    const remaining = Math.max(...(await at.stage.recordTtls(order, queue, "run")));
    expect(remaining).toBeGreaterThan(0);
    expect(remaining).toBeLessThanOrEqual(30_000);
    const handler = await load();
    at.service.rule = () => 204;
    expect(failures(await handler(batch(message(order)), contextOf()))).toEqual(["message-1"]);
    await at.stage.endLease(order, queue, "run");
    expect(failures(await handler(batch(message(order)), contextOf()))).toEqual([]);
    expect(at.service.calls).toHaveLength(2);
  });

  it("returns everything and ships nothing while the store is down", async () => {
    const handler = await load();
    const end = at.stage.outage();
    const answer = await handler(batch(...orders("a", "b").map(message)), contextOf());
    end();
    expect(failures(answer)).toEqual(["message-1", "message-2"]);
    expect(at.service.calls).toHaveLength(0);
  });
});
