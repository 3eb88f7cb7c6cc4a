import type { Client } from "./client.ts";
import { write } from "./storage.ts";
import type { World } from "./world.ts";

/** What a handler charges, and must charge once. */
export const amount = "$49";

/** The card's account. It takes every charge: it does not know that two of them are for one event. */
export class Bank {
  readonly charges: string[] = [];
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** A process charges the card. */
  async charge(client: Client): Promise<string> {
    const world = this.#world;
    const { storage: endpoint } = world;
    const arrive = () => {
      this.charges.push(client.name);
      const holder = client.name;
      world.record({ phase: "stored", endpoint, key: amount, holder, until: Number.POSITIVE_INFINITY });
      if (this.charges.length > 1) world.judge("violated", `${amount} CHARGED TWICE`);
      return undefined;
    };
    await write(world, client, { operation: `charge ${amount}`, arrive });
    return "paid";
  }

  /** All deliveries are answered. */
  close(): void {
    if (this.charges.length === 1) this.#world.judge("upheld", `${amount} CHARGED ONCE`);
  }

  /** Its charges, in words. */
  lines(): string[] {
    return this.charges.map((by) => `${amount}, by ${by}`);
  }
}
