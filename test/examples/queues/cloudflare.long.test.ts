import { randomUUID } from "node:crypto";
import type { Readable } from "node:stream";
import { Log, LogLevel, type Request, Response } from "miniflare";
import { expect, it } from "vitest";
import type { LocalEndpoint } from "../../../local/src/index.ts";
import { stripeDelivery } from "../../../tools/deliveries.mjs";
import { until } from "../../support/until.ts";
import { bundleForWorkerd, startWorkers } from "../bundle.ts";
import { staged } from "../stage.ts";

const at = staged();
const secret = "whsec_of-the-sender";

/** What a Worker does: it claims the key, sends the message or has the effect, and stores the result. */
type Step = "claims" | "acts" | "stores";

/** Who is killed and where; how many messages the queue then has of one event, and how often the warehouse is called. */
const kills: readonly [Side, Step, when: "before" | "after", messages: number, calls: number][] = [
  // At each request; the queue is no server, so nothing can be cut on the way to it.
  ["receiver", "claims", "before", 1, 1],
  ["receiver", "claims", "after", 1, 1],
  // The message is there, and nobody knows: the sender delivers again, and the consumer finds two of one event.
  ["receiver", "stores", "before", 2, 1],
  ["receiver", "stores", "after", 1, 1],
  ["consumer", "claims", "before", 1, 1],
  ["consumer", "claims", "after", 1, 1],
  ["consumer", "acts", "before", 1, 1],
  // It was shipped, and nobody knows: the warehouse is called again, with the same key.
  ["consumer", "acts", "after", 1, 2],
  ["consumer", "stores", "before", 1, 2],
  ["consumer", "stores", "after", 1, 1],
];
type Side = "receiver" | "consumer";

/** All requests of a Worker, which can be killed at one of them: before it has left, or when it was executed. */
class Wire {
  /** Where it is killed next, once. */
  cut: readonly [Step, when: "before" | "after"] | undefined;
  readonly #endpoint: LocalEndpoint;
  readonly #claimed = new Set<string>();

  constructor(endpoint: LocalEndpoint) {
    this.#endpoint = endpoint;
  }

  readonly send = async (request: Request): Promise<Response> => {
    const { url, method, headers } = request;
    const body = await request.text();
    const step = this.#stepOf(url, body);
    const [end, when] = this.cut ?? [];
    if (step === end) this.cut = undefined;
    if (step === end && when === "before") return this.#kill();
    const answer = await fetch(url, { method, headers: [...headers], body });
    if (step === end) return this.#kill();
    return new Response(await answer.text(), { status: answer.status, headers: [...answer.headers] });
  };

  #stepOf(url: string, body: string): Step {
    if (!url.startsWith(this.#endpoint.url)) return "acts";
    const sent = JSON.parse(body);
    const command: readonly string[] = Array.isArray(sent[0]) ? sent[0] : sent;
    if (!["NX", "claim", "prove"].some((word) => command.includes(word))) return "stores";
    // A script has its text or hash, and the number of keys, before the key.
    this.#claimed.add(command[command[0] === "SET" ? 1 : 3]!);
    return "claims";
  }

  /** Its database is as after the lease: the claim of the dead Worker is gone. */
  async #kill(): Promise<Response> {
    for (const key of this.#claimed) {
      // A result that was stored stays for days.
      const ttl = (await this.#endpoint.execute(["PTTL", key])) as number;
      if (ttl <= 60_000) await this.#endpoint.execute(["DEL", key]);
    }
    return new Response(null, { headers: { "x-kill": "1" } });
  }
}

/** What Miniflare's broker says of the queue. */
class QueueLog extends Log {
  acked = 0;
  dead = 0;

  constructor() {
    super(LogLevel.INFO);
  }

  override log(line: string): void {
    this.acked += Number(/QUEUE.* (\d+)\/\d+/.exec(line)?.[1] ?? 0);
    if (line.includes("to dead letter queue")) this.dead += 1;
  }
}

/** The receiver and the consumer as two Workers, and a queue of Miniflare between them. */
async function open(settings: object) {
  const [endpoint] = at.local.endpoints;
  const wires = { receiver: new Wire(endpoint), consumer: new Wire(endpoint) };
  const queue = new QueueLog();
  const example = {
    ...(await bundleForWorkerd("../test/examples/queues/mortal.ts")),
    compatibilityFlags: ["nodejs_compat"],
    queueProducers: { SHIPMENTS: "shipments" },
    bindings: {
      UPSTASH_REDIS_REST_URL: endpoint.url,
      UPSTASH_REDIS_REST_TOKEN: endpoint.token,
      STRIPE_WEBHOOK_SECRET: secret,
      WAREHOUSE_URL: at.service.url,
    },
  };
  const shipments = { maxBatchTimeout: 0, deadLetterQueue: "shipments-failed", ...settings };
  const workers = await startWorkers({
    log: queue,
    // Of every kill, workerd prints a stack.
    handleRuntimeStdio: (stdout: Readable, stderr: Readable) => void [stdout.resume(), stderr.resume()],
    workers: [
      { ...example, name: "receiver", outboundService: wires.receiver.send },
      { ...example, name: "consumer", outboundService: wires.consumer.send, queueConsumers: { shipments } },
    ],
  });
  /** Delivers the event about an order once. @returns the status of the answer */
  async function deliver(order: string): Promise<number> {
    const { path, headers, body } = stripeDelivery(
      secret,
      "checkout.session.completed",
      { id: order },
      `evt_${order}`,
    );
    const answer = await workers.dispatchFetch(`https://shop.example${path}`, {
      method: "POST",
      headers,
      body,
    });
    return answer.status;
  }
  return { wires, queue, deliver, producer: await workers.getQueueProducer("SHIPMENTS", "receiver") };
}

it("examples/queue-cloudflare ships each order once, loses none, and passes the key on, wherever it is killed", async () => {
  const { wires, queue, deliver } = await open({ maxRetries: 50, maxBatchSize: 1 });
  const found: unknown[] = [];
  for (const [side, step, when, messages] of kills) {
    const order = randomUUID();
    const before = queue.acked;
    wires[side].cut = [step, when];
    // As Stripe does, until it is accepted.
    await until(async () => (await deliver(order).catch(() => 0)) === 202, `the receiver of ${order}`);
    await until(() => queue.acked - before >= messages, `${messages} messages, ${side} ${step} ${when}`);
    expect(wires[side].cut).toBe(undefined);
    const calls = at.service.calls.filter(({ body }) => body.includes(order));
    const keys = calls.map(({ headers }) => headers["idempotency-key"]);
    expect(new Set(keys)).toEqual(new Set([`evt_${order}`]));
    found.push([side, step, when, queue.acked - before, keys.length]);
  }
  expect(found).toEqual(kills);
  expect(queue.dead).toBe(0);
});

it("examples/queue-cloudflare tells a second message to come later, and leaves what always fails to the dead letter queue", async () => {
  const { queue, producer } = await open({ maxRetries: 2 });
  const event = randomUUID();
  at.service.rule = ({ body }) => (body.includes("bad") ? 500 : undefined);
  const good = { body: { event, order: "good" } };
  await producer.sendBatch([
    good,
    good,
    { body: { event: randomUUID(), order: "bad" } },
    { body: "no shipment" },
  ]);
  const call = await until(() => at.service.calls.find(({ body }) => body.includes("good")), "the shipment");
  call.answer(201);
  // The second message of the event comes again when the lease can have ended.
  await until(() => queue.dead === 2, "the dead letter queue");
  expect(queue.acked).toBe(1);
  const orders = at.service.calls.map(({ body }) => (JSON.parse(body) as { order: string }).order);
  expect(orders.sort()).toEqual(["bad", "bad", "bad", "good"]);
});
