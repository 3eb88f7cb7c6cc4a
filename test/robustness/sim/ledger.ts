import type { AccessRecord } from "../linearizability/history.ts";
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
  /** Everything that was asked of it. */
  readonly accesses: AccessRecord[] = [];
  readonly #accounts = new Map<string, Account>();

  constructor(world: World) {
    this.#world = world;
  }

  /** The balance, or undefined when a larger fence was here already. */
  open(process: Process, resource: string, fence: number): Promise<number | undefined> {
    return this.#travel(process, resource, { kind: "open", fence }, (account) => {
      if (fence < account.fence) return { accepted: false };
      account.fence = fence;
      return { accepted: true, value: account.balance };
    });
  }

  /** Accepted from the one who opened it last. */
  async write(process: Process, resource: string, fence: number, value: number): Promise<void> {
    await this.#travel(process, resource, { kind: "write", fence, value }, (account) => {
      const accepted = fence === account.fence;
      this.#world.count(accepted ? "ledger accepted" : "ledger refused");
      if (accepted) {
        account.balance = value;
        account.acknowledged += 1;
      }
      return { accepted };
    });
  }

  checkAtEnd(): void {
    for (const [name, { balance, acknowledged }] of this.#accounts) {
      if (balance === acknowledged) continue;
      this.#world.violate("no lost update", `${name}: ${acknowledged} increments came to ${balance}`);
    }
  }

  /** A question that takes its time there and back. */
  #travel(
    process: Process,
    resource: string,
    access: AccessRecord["access"],
    at: (account: Account) => { readonly accepted: boolean; readonly value?: number },
  ): Promise<number | undefined> {
    const { scheduler, draw } = this.#world;
    const invoked = scheduler.now;
    return new Promise((resolve) => {
      scheduler.at(scheduler.now + draw.between(1, 30), () => {
        const reply = at(this.#account(resource));
        const returned = scheduler.now + draw.between(1, 30);
        this.accesses.push({ resource, holder: process.name, access, invoked, returned, ...reply });
        scheduler.at(returned, () => process.deliver(() => resolve(reply.value)));
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
