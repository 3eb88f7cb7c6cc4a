import { randomUUID } from "node:crypto";
import middy from "@middy/core";
import type { Context, SQSBatchResponse, SQSEvent } from "aws-lambda";
import { expect, it, onTestFinished, vi } from "vitest";
import { withLock } from "../../examples/lambda-middy/lock.ts";
import { endpointsFromEnv, type FencedLock, Redlock } from "../../src/index.ts";
import { importInNode } from "./bundle.ts";
import { staged } from "./stage.ts";

const at = staged();
const context = (ms = 30_000) => ({ getRemainingTimeInMillis: () => ms }) as Context;

/** A batch of messages; `message-1` is the first. */
function batch(...bodies: string[]): SQSEvent {
  const records = bodies.map((body, index) => ({
    messageId: `message-${index + 1}`,
    body,
    eventSource: "aws:sqs",
    eventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:orders",
  }));
  return { Records: records } as unknown as SQSEvent;
}

it("examples/queue-sqs/ship returns only the messages that failed, and ships only those again", async () => {
  type Handler = (event: SQSEvent, context: Context) => Promise<SQSBatchResponse>;
  const env = { ...at.stage.local.env(), WAREHOUSE_URL: at.service.url };
  const { handler } = await importInNode<{ handler: Handler }>("queue-sqs/ship.ts", env);
  const [good, bad] = [`good-${randomUUID()}`, `bad-${randomUUID()}`];
  const about = (order: string) => JSON.stringify({ event: `evt_${order}`, order });
  const event = batch(about(good), about(bad), "no JSON");
  const failed = async (ms?: number) => (await handler(event, context(ms))).batchItemFailures;
  const logged = vi.spyOn(console, "error").mockReturnValue();
  onTestFinished(() => logged.mockRestore());
  const named = (...numbers: number[]) => numbers.map((number) => ({ itemIdentifier: `message-${number}` }));

  // Nothing is begun that cannot end before Lambda's timeout.
  expect(await failed(1_000)).toEqual(named(1, 2, 3));
  expect(at.service.calls).toEqual([]);
  at.service.rule = ({ body }) => (body.includes(bad) ? 500 : 204);
  logged.mockClear();
  expect(await failed()).toEqual(named(2, 3));
  expect(logged.mock.calls).toEqual([
    ["message-2", expect.objectContaining({ message: `order ${bad}: the warehouse answered 500` })],
    ["message-3", expect.any(SyntaxError)],
  ]);
  at.service.rule = () => 204;
  // The whole batch is delivered again, as after a lost answer.
  expect(await failed()).toEqual(named(3));
  const orders = at.service.calls.map(({ body }) => (JSON.parse(body) as { order: string }).order);
  expect(orders.sort()).toEqual([bad, bad, good]);
});

it("examples/lambda-middy runs one handler of a name at a time, and releases after a failure", async () => {
  const endpoints = endpointsFromEnv(at.stage.local.env());
  const redlock = new Redlock({ endpoints, timeout: 20_000, ttl: 60_000 });
  const handler = middy()
    .use(withLock<{ invoice: string; fails: boolean }>(redlock, ({ invoice }) => invoice))
    .handler(async ({ fails }, { lock }: Context & { lock?: FencedLock }) => {
      expect(await redlock.tryAcquire("42")).toBe(null);
      if (fails) throw new Error("no");
      return lock!.fence;
    });
  const invoke = (fails: boolean) => handler({ invoice: "42", fails }, context());
  const [failed, ...fences] = await Promise.allSettled([invoke(true), invoke(false), invoke(false)]);
  expect(failed).toMatchObject({ status: "rejected", reason: { message: "no" } });
  expect(new Set(fences.map((each) => each.status === "fulfilled" && each.value)).size).toBe(2);
  expect(fences).toMatchObject([{ status: "fulfilled" }, { status: "fulfilled" }]);
});
