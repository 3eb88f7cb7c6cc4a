import type { Process } from "./process.ts";
import type { World } from "./world.ts";

interface Account {
  balance: number;
  /** The largest fence that was seen. */
  fence: number;
  /** Increments that it has acknowledged. */
  acknowledged: number;
}

/**
 * What fenced locks protect: a database that refuses whoever comes with a smaller fence than it has seen. A
 * holder first opens its account, which lets nobody older in any more, and then writes.
 */
export class Ledger {
  readonly #world: World;
  readonly #accounts = new Map<string, Account>();

  constructor(world: World) {
    this.#world = world;
  }

  /** The balance, or undefined when a larger fence was here already. */
  open(process: Process, name: string, fence: number): Promise<number | undefined> {
    return this.#travel(process, () => {
      const account = this.#account(name);
      if (fence <= account.fence) return undefined;
      account.fence = fence;
      return account.balance;
    });
  }

  /** Whether it was accepted. */
  write(process: Process, name: string, fence: number, balance: number): Promise<boolean> {
    return this.#travel(process, () => {
      const account = this.#account(name);
      this.#world.count(fence === account.fence ? "ledger accepted" : "ledger refused");
      if (fence !== account.fence) return false;
      account.balance = balance;
      account.acknowledged += 1;
      return true;
    });
  }

  conclude(): void {
    for (const [name, { balance, acknowledged }] of this.#accounts) {
      if (balance === acknowledged) continue;
      this.#world.violate("no lost update", `${name}: ${acknowledged} increments came to ${balance}`);
    }
  }

  /** A question that takes its time there and back. */
  #travel<Reply>(process: Process, at: () => Reply): Promise<Reply> {
    const { scheduler, draw } = this.#world;
    return new Promise((resolve) => {
      scheduler.at(scheduler.now + draw.between(1, 30), () => {
        const reply = at();
        scheduler.at(scheduler.now + draw.between(1, 30), () => process.deliver(() => resolve(reply)));
      });
    });
  }

  #account(name: string): Account {
    let account = this.#accounts.get(name);
    if (!account) {
      account = { balance: 0, fence: 0, acknowledged: 0 };
      this.#accounts.set(name, account);
    }
    return account;
  }
}
