// Vitest: hours of a lock in no time, and an event that is not Stripe's.

import { memoryEndpoint, virtualRedlock } from "redis-rest-local/memory";
import { Redlock } from "redlock-edge";
import { signedDelivery } from "redlock-edge/testing";
import { stripe } from "redlock-edge/webhooks";
import { expect, test } from "vitest";
import { bookkeeper } from "./bookkeeper.js";

test("the lock of a process that hangs goes to the next one", async () => {
  const { redlock, time } = virtualRedlock();
  await redlock.acquire("report", { ttl: 3_600_000 });
  await time.advance(3_500_000);
  expect(await redlock.tryAcquire("report")).toBe(null);
  await time.advance(101_000);
  expect(await redlock.tryAcquire("report")).not.toBe(null);
});

test("a forged event is refused", async () => {
  const secret = "whsec_test";
  const redlock = new Redlock({ endpoints: [memoryEndpoint()] });
  const handler = bookkeeper(redlock, { secret, book: () => expect.unreachable() });
  const delivery = await signedDelivery(stripe, { secret }, { body: { type: "invoice.paid" } });
  const forged = { ...delivery, body: `${delivery.body} ` };
  expect((await handler(new Request(forged.url, forged))).status).toBe(401);
});
