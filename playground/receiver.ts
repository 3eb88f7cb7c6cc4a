import { Idempotency } from "../src/idempotency/index.ts";
import type { Bank } from "./bank.ts";
import type { Client } from "./client.ts";
import { Handler } from "./handler.ts";
import { event } from "./names.ts";
import type { World } from "./world.ts";

/**
 * A process that gets a delivery of the event, and charges the card.
 *
 * @param play `isGuarded`: whether the library runs what handles it
 */
export function receiver(
  client: Client,
  { world, bank, isGuarded }: { readonly world: World; readonly bank: Bank; readonly isGuarded: boolean },
): Handler {
  const charge = () => bank.charge(client);
  const byHand = () => charge().then(() => "handled");
  return new Handler(client, {
    label: "Deliver",
    key: event,
    next: () => event,
    handle: isGuarded ? once(client, world, charge) : byHand,
  });
}

function once(client: Client, world: World, charge: () => Promise<string>): () => Promise<string> {
  const backoff = { min: 100, max: 200 };
  const idempotency = new Idempotency(client.redlock(), { wait: 20_000, backoff });
  return async () => {
    const run = idempotency.run(event, charge);
    // The key is hashed in a thread.
    world.standStill(Promise.race([world.nextRequest(client.name), run]));
    const { status } = await run;
    return status === "executed" ? "handled" : "replayed";
  };
}
