import { entryOf } from "../field.ts";
import type { Process } from "../world/process.ts";
import type { World } from "../world/world.ts";

interface Account {
  balance: number;
  /** The largest fence seen so far. */
  fence: number;
  /** Acknowledged increments. */
  acknowledged: number;
}

/**
 * A database that fenced locks protect. It refuses every fence that is smaller than one it has seen. A holder first
 * opens its account, so that smaller fences are refused from then on, and then writes.
 */
export class Ledger {
  readonly #world: World;
  readonly #accounts = new Map<string, Account>();

  constructor(world: World) {
    this.#world = world;
  }

  /** @returns the balance; undefined: a larger fence has been here */
  open(process: Process, resource: string, fence: number): Promise<number | undefined> {
    return this.#request(process, resource, (account) => {
      if (fence < account.fence) return undefined;
      account.fence = fence;
      return account.balance;
    });
  }

  /** Writes a balance. Accepted from the holder that opened the account last. @returns whether it was accepted */
  async write(process: Process, resource: string, fence: number, value: number): Promise<boolean> {
    let isAccepted = false;
    await this.#request(process, resource, (account) => {
      isAccepted = fence === account.fence;
      this.#world.count(isAccepted ? "ledger accepted" : "ledger refused");
      if (isAccepted) {
        account.balance = value;
        account.acknowledged += 1;
      }
      return undefined;
    });
    return isAccepted;
  }

  /** Every acknowledged increment is in the balance. */
  checkAtEnd(): void {
    for (const [name, { balance, acknowledged }] of this.#accounts) {
      if (acknowledged === 0) continue;
      const detail = () => `${name}: ${acknowledged} increments came to ${balance}`;
      this.#world.check("no lost update", balance === acknowledged, detail);
    }
  }

  /** A request that takes a while to the database and back. */
  #request(
    process: Process,
    resource: string,
    at: (account: Account) => number | undefined,
  ): Promise<number | undefined> {
    const { scheduler, draw } = this.#world;
    return new Promise((resolve) => {
      scheduler.at(scheduler.now + draw.between(1, 30), () => {
        const account = entryOf(this.#accounts, resource, () => ({ balance: 0, fence: 0, acknowledged: 0 }));
        const reply = at(account);
        const returned = scheduler.now + draw.between(1, 30);
        scheduler.at(returned, () => process.deliver(() => resolve(reply)));
      });
    });
  }
}
