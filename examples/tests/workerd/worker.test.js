// Vitest in workerd: the whole Worker, on local databases.

import { env, exports } from "cloudflare:workers";
import { signedDelivery } from "redlock-edge/testing";
import { stripe } from "redlock-edge/webhooks";
import { expect, test, vi } from "vitest";

test("an event that comes twice is booked once", async () => {
  const log = vi.spyOn(console, "log");
  const body = { type: "invoice.paid", data: { object: { id: "in_42" } } };
  const delivery = await signedDelivery(stripe, { secret: env.STRIPE_WEBHOOK_SECRET }, { body });
  const first = await exports.default.fetch(new Request(delivery.url, delivery));
  const again = await exports.default.fetch(new Request(delivery.url, delivery));
  expect([first.status, again.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
  expect(log.mock.calls).toEqual([["booked", "in_42"]]);
});
