import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { rejection } from "../support/outcomes.ts";
import { until } from "../support/until.ts";
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
import { staged } from "./stage.ts";

// What the handlers do shortly before Lambda's timeout, which is in real time: a busy machine may need all of it.

const at = staged();

it("a payment ends before Lambda's timeout, aborts the request to the ledger and frees the key", async () => {
  const handler = await loadPayments(at);
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

it("the queue returns a slow message before Lambda's timeout, frees its key, and keeps the others", async () => {
  const handler = await loadQueue(at);
  const [slow, quick] = orders("slow", "quick") as [string, string];
  const context = contextOf(6_500);
  at.service.rule = ({ path }) => (path.endsWith(slow) ? undefined : 204);
  expect(failures(await handler(batch(message(slow), message(quick)), context))).toEqual(["message-1"]);
  expect(context.getRemainingTimeInMillis()).toBeGreaterThan(0);
  expect(await at.stage.recordTtls(slow, queue, "run")).toEqual([-2, -2, -2]);
  expect(Math.min(...(await at.stage.recordTtls(quick, queue, "run")))).toBeGreaterThan(60_000);
});
