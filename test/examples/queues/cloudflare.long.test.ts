import { randomUUID } from "node:crypto";
import type { Readable } from "node:stream";
import { Log, LogLevel } from "miniflare";
import { expect, it } from "vitest";
import { until } from "../../support/until.ts";
import { bundleForWorkerd, startWorkers } from "../bundle.ts";
import { staged } from "../stage.ts";
import { deliverTwice, killAtEach, type Queue, type Scene, secret } from "./kills.ts";
import { openWire } from "./wire.ts";

const at = staged();

/** What Miniflare's broker says of the queue. */
class QueueLog extends Log implements Queue {
  acked = 0;
  dead = 0;
  postponed = 0;

  constructor() {
    super(LogLevel.INFO);
  }

  override log(line: string): void {
    const [, acked, total] = /QUEUE.* (\d+)\/(\d+)/.exec(line) ?? [];
    this.acked += Number(acked ?? 0);
    this.postponed += Number(total ?? 0) - Number(acked ?? 0);
    if (line.includes("to dead letter queue")) this.dead += 1;
  }
}

/** The receiver and the consumer as two Workers, and a queue of Miniflare between them. */
async function open(settings: object) {
  const [endpoint] = at.local.endpoints;
  const [receiver, consumer] = await Promise.all([openWire(endpoint), openWire(endpoint)]);
  const queue = new QueueLog();
  const example = {
    ...(await bundleForWorkerd("../test/examples/queues/mortal.ts")),
    compatibilityFlags: ["nodejs_compat"],
    queueProducers: { SHIPMENTS: "shipments" },
  };
  const WAREHOUSE_URL = await consumer.to(at.service.url);
  const workers = await startWorkers({
    log: queue,
    // Of every kill, workerd prints a stack.
    handleRuntimeStdio: (stdout: Readable, stderr: Readable) => void [stdout.resume(), stderr.resume()],
    workers: [
      { ...example, name: "receiver", bindings: { ...receiver.env, STRIPE_WEBHOOK_SECRET: secret } },
      {
        ...example,
        name: "consumer",
        bindings: { ...consumer.env, WAREHOUSE_URL },
        queueConsumers: {
          shipments: { maxBatchTimeout: 0, deadLetterQueue: "shipments-failed", ...settings },
        },
      },
    ],
  });
  const scene: Scene = {
    receiver,
    consumer,
    queue,
    service: at.service,
    async deliver({ path, headers, body }) {
      const options = { method: "POST", headers, body };
      return (await workers.dispatchFetch(`https://shop.example${path}`, options)).status;
    },
  };
  return { ...scene, queue, producer: await workers.getQueueProducer("SHIPMENTS", "receiver") };
}

it("examples/queue-cloudflare ships each order once, loses none, and passes the key on, wherever it is killed", async () => {
  const scene = await open({ maxRetries: 50, maxBatchSize: 1 });
  await deliverTwice(scene);
  await killAtEach(scene);
});

it("examples/queue-cloudflare tells a second message to come later while the first is under way", async () => {
  const { queue, service, producer } = await open({ maxRetries: 50 });
  const [event, order] = [randomUUID(), randomUUID()];
  service.rule = () => undefined;
  await producer.sendBatch([{ body: { event, order } }, { body: { event, order } }]);
  const call = await service.next();
  call.answer(201);
  await until(() => queue.acked + queue.postponed === 2, "the batch");
  expect([queue.acked, queue.postponed]).toEqual([1, 1]);
  expect(service.calls).toHaveLength(1);
});

it("examples/queue-cloudflare leaves what always fails to the dead letter queue, and ships what comes with it", async () => {
  const { queue, service, producer } = await open({ maxRetries: 2 });
  service.rule = ({ body }) => (body.includes("bad") ? 500 : 201);
  const messages = ["bad", "good"].map((order) => ({ body: { event: randomUUID(), order } }));
  await producer.sendBatch([...messages, { body: "no shipment" }]);
  await until(() => queue.dead === 2, "the dead letter queue");
  expect(queue.acked).toBe(1);
  const orders = service.calls.map(({ body }) => (JSON.parse(body) as { order: string }).order);
  expect(orders.sort()).toEqual(["bad", "bad", "bad", "good"]);
});
