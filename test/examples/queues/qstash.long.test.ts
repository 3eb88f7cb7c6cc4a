import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { until } from "../../support/until.ts";
import { bundleForNode } from "../bundle.ts";
import { staged } from "../stage.ts";
import { checkout, deliverTwice, killAtEach, kills, postponesSecond, type Scene, secret } from "./kills.ts";
import { program } from "./program.ts";
import { type QStash, startQStash } from "./qstash.ts";

const at = staged();

/** The receiver and the consumer, each in a process of its own, and QStash between them. */
async function open(): Promise<Scene & { readonly queue: QStash }> {
  const [endpoint] = at.stage.local.endpoints;
  const queue = await startQStash();
  const receiver = await program(await bundleForNode("queue-qstash/api/stripe.ts"), endpoint);
  const consumer = await program(await bundleForNode("queue-qstash/api/ship.ts"), endpoint);
  const SHIP_URL = `${consumer.url}/api/ship`;
  const { QSTASH_TOKEN, QSTASH_URL, ...keys } = queue.env;
  receiver.start({
    STRIPE_WEBHOOK_SECRET: secret,
    QSTASH_TOKEN,
    QSTASH_URL: await receiver.wire.to(QSTASH_URL),
    SHIP_URL,
  });
  consumer.start({ ...keys, SHIP_URL, WAREHOUSE_URL: await consumer.wire.to(at.service.url) });
  return {
    receiver: receiver.wire,
    consumer: consumer.wire,
    queue,
    service: at.service,
    async deliver({ headers, body }) {
      return (await fetch(`${receiver.url}/api/stripe`, { method: "POST", headers, body })).status;
    },
  };
}

it("examples/queue-qstash ships each order once, loses none, and passes the key on, wherever it is killed", async () => {
  const scene = await open();
  await deliverTwice(scene);
  await killAtEach(kills, scene);
});

it("examples/queue-qstash tells a second delivery to come later while the first is under way", async () => {
  await postponesSecond(await open());
});

it("examples/queue-qstash has the event sent again while QStash is down, and gives up what the warehouse refuses", async () => {
  const { queue, service, deliver } = await open();
  const order = randomUUID();
  queue.down = true;
  expect(await deliver(checkout(order))).toBe(502);
  queue.down = false;
  service.rule = () => 422;
  expect(await deliver(checkout(order))).toBe(202);
  await until(() => queue.dead === 1, "the message");
  expect(service.calls).toHaveLength(1);
});
