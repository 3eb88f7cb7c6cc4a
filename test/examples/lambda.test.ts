import { randomUUID } from "node:crypto";
import type { APIGatewayProxyStructuredResultV2 } from "aws-lambda";
import { describe, expect, it } from "vitest";
import { bundleForNode } from "./bundle.ts";
import {
  batch,
  contextOf,
  failures,
  loadPayments,
  loadQueue,
  message,
  orders,
  payment,
  queue,
} from "./lambda-events.ts";
import { startNode } from "./node-process.ts";
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

  it("does not ship a crashed invocation's order during the lease, and ships it afterwards", async () => {
    const [order] = orders("crashed") as [string];
    const handler = await load();
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
