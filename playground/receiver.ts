import { Idempotency } from "../src/idempotency/index.ts";
import type { Actor, Slot } from "./actor.ts";
import type { Bank } from "./bank.ts";
import type { Client } from "./client.ts";
import { event } from "./names.ts";
import type { World } from "./world.ts";

/** A process that gets a delivery of the event, and charges the card. */
export class Receiver implements Actor {
  readonly client: Client;
  readonly #world: World;
  readonly #bank: Bank;
  readonly #idempotency: Idempotency | undefined;
  #open = 0;
  #last = "has received nothing";

  /** @param play `isGuarded`: whether the library runs the handler */
  constructor(
    client: Client,
    play: { readonly world: World; readonly bank: Bank; readonly isGuarded: boolean },
  ) {
    this.client = client;
    this.#world = play.world;
    this.#bank = play.bank;
    if (play.isGuarded) {
      const backoff = { min: 100, max: 200 };
      this.#idempotency = new Idempotency(client.redlock(), { wait: 20_000, backoff });
    }
  }

  get says(): string {
    return `${this.client.isFrozen ? "frozen, " : ""}${this.isBusy ? `handles ${event}` : this.#last}`;
  }

  get isBusy(): boolean {
    return this.#open > 0;
  }

  readonly slots: readonly Slot[] = [
    [{ label: "Deliver", isPossible: () => !this.client.isFrozen, act: () => this.receive() }],
  ];

  /** The event is delivered to it. */
  async receive(): Promise<void> {
    const { client } = this;
    client.calls += 1;
    const about = { operation: event, key: event, call: `${client.calls}` };
    client.record({ phase: "called", ...about });
    this.#open += 1;
    try {
      const name = await this.#handle();
      this.#last = `has ${name} ${event}`;
      client.record({ phase: "returned", ...about, outcome: "granted", name });
    } catch (error) {
      this.#last = `could not handle ${event}`;
      client.record({ phase: "returned", ...about, outcome: "error", detail: String(error) });
    }
    this.#open -= 1;
  }

  async #handle(): Promise<string> {
    const { client } = this;
    const charge = () => this.#bank.charge(client);
    if (!this.#idempotency) {
      await charge();
      return "handled";
    }
    const run = this.#idempotency.run(event, charge);
    // The key is hashed in a thread.
    this.#world.standStill(Promise.race([this.#world.nextRequest(client.name), run]));
    const { status } = await run;
    return status === "executed" ? "handled" : "replayed";
  }
}
