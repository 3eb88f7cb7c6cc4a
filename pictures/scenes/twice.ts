import { Idempotency } from "../../src/idempotency/index.ts";
import type { Client } from "../world/client.ts";
import { redlockIn } from "../world/link.ts";
import type { Act, Scene } from "./scene.ts";

const amount = "$49";
const event = "evt_1";

/** One event, delivered twice. */
export const twice: Scene = {
  name: "twice",
  title: "One event. Delivered twice. Handled once.",
  clients: ["delivery 1", "delivery 2"],
  storage: "the bank",
  isPlain: true,
  acts: [
    { title: "Without redlock-edge", endpoints: 0, play: deliverTwice(() => byHand) },
    { title: "With redlock-edge", endpoints: 1, play: deliverTwice(once) },
  ],
};

/** What a client does with a delivery. @returns what has become of it, in a word */
type Handle = (charge: () => Promise<void>) => Promise<string>;

const byHand: Handle = (charge) => charge().then(() => "handled");

function once(client: Client): Handle {
  const backoff = { min: 100, max: 200 };
  const idempotency = new Idempotency(redlockIn(client), { wait: 20_000, backoff });
  return async (charge) => {
    const { status } = await idempotency.run(event, () => charge().then(() => "paid"));
    return status === "executed" ? "handled" : "replayed";
  };
}

function deliverTwice(handleOf: (client: Client) => Handle): Act["play"] {
  return async (world, clients) => {
    let charges = 0;
    // The bank does not know that two charges are for one event.
    const charge = (client: Client) =>
      client.write(`charge ${amount}`, () => {
        charges += 1;
        const [endpoint, until] = [world.storage, Number.POSITIVE_INFINITY];
        world.record({ phase: "stored", endpoint, key: amount, holder: client.name, until });
        if (charges > 1) world.judge("violated", `${amount} CHARGED TWICE`);
        return undefined;
      });
    const [deliver, deliverAgain] = clients.map((client) => {
      const handle = handleOf(client);
      return () => client.call(event, event, () => handle(() => charge(client)));
    });
    for (const { name } of clients) world.distances.set(`${name}>${world.storage}`, 70);
    const answered = deliver!();
    await world.time.sleep(120);
    await Promise.all([answered, deliverAgain!()]);
    if (charges === 1) world.judge("upheld", `${amount} CHARGED ONCE`);
  };
}
