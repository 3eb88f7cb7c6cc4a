import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { type Delivery, stripeDelivery } from "../../../tools/deliveries.mjs";
import { until } from "../../support/until.ts";
import type { Service } from "../stage.ts";
import type { Step, Wire } from "./wire.ts";

/** A queue, as far as the tests count what becomes of its messages. */
export interface Queue {
  /** Messages whose consumer has said that they are done. */
  readonly acked: number;
  /** Messages that the queue has given up. */
  readonly dead: number;
}

/** An example that runs, with what surrounds it. */
export interface Scene {
  readonly receiver: Wire;
  readonly consumer: Wire;
  readonly queue: Queue;
  /** The warehouse. */
  readonly service: Service;
  /** Delivers an event once. @returns the status of the answer */
  deliver(delivery: Delivery): Promise<number>;
}

/** Who is killed and where; how many messages the queue then has of one event, and how often the warehouse is called. */
type Kill = readonly [
  side: "receiver" | "consumer",
  step: Step,
  when: "before" | "after",
  messages: number,
  calls: number,
];

/** At each request; the queue is no server, so nothing can be cut on the way to it. */
const kills: readonly Kill[] = [
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

export const secret = "whsec_of-the-sender";

export function checkout(order: string): Delivery {
  return stripeDelivery(secret, "checkout.session.completed", { id: order }, `evt_${order}`);
}

/** Delivers an event as Stripe does, again and again until the answer is a success. */
async function untilAccepted(deliver: Scene["deliver"], order: string): Promise<void> {
  await until(async () => {
    const status = await deliver(checkout(order)).catch(() => 0);
    return status >= 200 && status < 300;
  }, `the receiver of ${order}`);
}

/** The keys of the warehouse's calls about an order. */
function keysOf(service: Service, order: string): unknown[] {
  return service.calls
    .filter(({ body }) => body.includes(order))
    .map(({ headers }) => headers["idempotency-key"]);
}

/** Kills the example once at each of these places, each time with a new event, and compares what has become of it. */
export async function killAtEach(scene: Scene): Promise<void> {
  const { queue, service, deliver } = scene;
  const found: unknown[] = [];
  for (const [side, step, when, messages] of kills) {
    const order = randomUUID();
    const before = queue.acked;
    scene[side].cut = { step, when };
    await untilAccepted(deliver, order);
    await until(() => queue.acked - before >= messages, `${messages} messages, ${side} ${step} ${when}`);
    expect(scene[side].cut).toBe(undefined);
    const keys = keysOf(service, order);
    expect(new Set(keys)).toEqual(new Set([`evt_${order}`]));
    found.push([side, step, when, queue.acked - before, keys.length]);
  }
  expect(found).toEqual(kills);
  expect(queue.dead).toBe(0);
}

/** Delivers an event twice: it is shipped once. */
export async function deliverTwice({ queue, service, deliver }: Scene): Promise<void> {
  const order = randomUUID();
  const before = queue.acked;
  expect(await deliver(checkout(order))).toBe(202);
  expect(await deliver(checkout(order))).toBe(202);
  await until(() => queue.acked > before, "the message");
  expect(keysOf(service, order)).toEqual([`evt_${order}`]);
}
