// Jest, with the setting of the README.

import { memoryEndpoint } from "redis-rest-local/memory";
import { Redlock } from "redlock-edge";
import { signedDelivery } from "redlock-edge/testing";
import { stripe } from "redlock-edge/webhooks";
import { bookkeeper } from "./bookkeeper.js";

test("an event that comes twice is booked once", async () => {
  const secret = "whsec_test";
  const book = jest.fn();
  const handler = bookkeeper(new Redlock({ endpoints: [memoryEndpoint()] }), { secret, book });
  const body = { type: "invoice.paid", data: { object: { id: "in_42" } } };
  const delivery = await signedDelivery(stripe, { secret }, { body });
  await handler(new Request(delivery.url, delivery));
  const again = await handler(new Request(delivery.url, delivery));
  expect(again.headers.get("idempotent-replayed")).toBe("true");
  expect(book.mock.calls).toEqual([["in_42"]]);
});
