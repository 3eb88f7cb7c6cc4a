import { it } from "vitest";
import { onDemand } from "../../support/on-demand.ts";
import { bundleForNode } from "../bundle.ts";
import { lambdaEvent } from "../lambda-event.ts";
import { staged } from "../stage.ts";
import { deliverTwice, killAtEach, kills, postponesSecond, type Scene, secret } from "./kills.ts";
import { program } from "./program.ts";
import { type Sqs, startSqs } from "./sqs.ts";

const at = staged();

/** Invokes a function that listens at this URL. */
async function invoke(url: string, event: object): Promise<{ readonly statusCode?: number }> {
  const answer = await fetch(url, { method: "POST", body: JSON.stringify(event) });
  if (!answer.ok) throw new Error(await answer.text());
  return (await answer.json()) as object;
}

/** The receiver and the consumer, each in a process of its own, and SQS between them. */
async function open(): Promise<Scene & { readonly queue: Sqs }> {
  const [endpoint] = at.stage.local.endpoints;
  const receiver = await program(
    await bundleForNode("queue-sqs/receive.ts", { nodePaths: [onDemand()] }),
    endpoint,
  );
  const consumer = await program(await bundleForNode("queue-sqs/ship.ts"), endpoint);
  const queue = await startSqs((event) => invoke(consumer.url, event));
  receiver.start({
    STRIPE_WEBHOOK_SECRET: secret,
    QUEUE_URL: `${await receiver.wire.to(queue.url)}/123456789012/shipments`,
    AWS_REGION: "eu-central-1",
    AWS_ACCESS_KEY_ID: "of-the-function",
    AWS_SECRET_ACCESS_KEY: "secret",
  });
  consumer.start({ WAREHOUSE_URL: await consumer.wire.to(at.service.url) });
  return {
    receiver: receiver.wire,
    consumer: consumer.wire,
    queue,
    service: at.service,
    async deliver(delivery) {
      return (await invoke(receiver.url, lambdaEvent(delivery))).statusCode ?? 0;
    },
  };
}

it("examples/queue-sqs ships each order once, loses none, and passes the key on, wherever it is killed", async () => {
  const scene = await open();
  await deliverTwice(scene);
  await killAtEach(kills, scene);
});

it("examples/queue-sqs returns a second delivery as failed while the first is under way", async () => {
  await postponesSecond(await open());
});
