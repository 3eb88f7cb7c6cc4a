import type { Account, LedgerRequest } from "./records.ts";

/** The final state of one account. */
export interface Balance {
  readonly account: Account;
  /** Acknowledged writes, each of which was to add 1. */
  acknowledged: number;
  balance: number;
  /** Opens and writes that were refused because their fence was too small. */
  refused: number;
}

interface OpenAccount extends Balance {
  fence: number;
}

/** The database that the locks protect. It decides and writes in one step, so that nothing comes in between. */
export class Ledger {
  readonly #accounts: ReadonlyMap<string, OpenAccount>;
  /** By event, the runs that left an effect. */
  readonly effects = new Map<string, string[]>();

  constructor(accounts: readonly Account[]) {
    this.#accounts = new Map(
      accounts.map((account) => [
        account.name,
        { account, balance: 0, fence: 0, acknowledged: 0, refused: 0 },
      ]),
    );
  }

  get balances(): readonly Balance[] {
    return [...this.#accounts.values()];
  }

  /** @returns the balance read or written; null: refused, because the fence is too small */
  execute(request: LedgerRequest): number | null {
    if (request.kind === "effect") {
      const { event, run } = request;
      this.effects.set(event, [...(this.effects.get(event) ?? []), run]);
      return 0;
    }
    const account = this.#accounts.get(request.account)!;
    if (request.kind === "read") return account.balance;
    // From an open on smaller fences are refused, so that what is read stays true until the opener writes.
    const isGood = request.kind === "open" ? request.fence > account.fence : mayWrite(account, request.fence);
    if (!isGood) {
      account.refused += 1;
      return null;
    }
    account.fence = Math.max(account.fence, request.fence);
    if (request.kind === "write") {
      account.balance = request.balance;
      account.acknowledged += 1;
    }
    return account.balance;
  }
}

function mayWrite({ account: { guard }, fence: seen }: OpenAccount, fence: number): boolean {
  if (guard === "none") return true;
  return guard === "opened" ? fence === seen : fence > seen;
}
