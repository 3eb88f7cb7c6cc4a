// node --test: no network, and then a local Redis that loses a reply. Nothing here must be closed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { start } from "redis-rest-local";
import { memoryEndpoint } from "redis-rest-local/memory";
import { endpointsFromEnv, Redlock } from "redlock-edge";
import { signedDelivery } from "redlock-edge/testing";
import { stripe } from "redlock-edge/webhooks";
import { bookkeeper } from "./bookkeeper.js";

const secret = "whsec_test";
const body = { type: "invoice.paid", data: { object: { id: "in_42" } } };

/** Sends an event of Stripe twice. @param {Redlock} redlock */
async function sendTwice(redlock) {
  /** @type {string[]} */
  const booked = [];
  const handler = bookkeeper(redlock, { secret, book: (invoice) => booked.push(invoice) });
  const delivery = await signedDelivery(stripe, { secret }, { body });
  const first = await handler(new Request(delivery.url, delivery));
  const again = await handler(new Request(delivery.url, delivery));
  return { booked, first, again };
}

test("an event that comes twice is booked once", async () => {
  const { booked, first, again } = await sendTwice(new Redlock({ endpoints: [memoryEndpoint()] }));
  assert.deepEqual(booked, ["in_42"]);
  assert.equal(await again.text(), await first.text());
});

test("an event is booked once, even if Redis loses a reply", async () => {
  const local = await start({ count: 1 });
  local.endpoints[0].faults.add({ fault: "drop-reply", times: 1 });
  const { booked } = await sendTwice(new Redlock({ endpoints: endpointsFromEnv(local.env()) }));
  assert.deepEqual(booked, ["in_42"]);
});
