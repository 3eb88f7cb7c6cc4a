import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Account, LedgerRequest } from "./records.ts";

/** The final state of one account. */
export interface Balance {
  readonly account: Account;
  /** Acknowledged writes, each of which was to add 1. */
  readonly acknowledged: number;
  /** The last balance in its file. */
  readonly final: number;
  /** Opens and writes that were refused because their fence was too small. */
  readonly refused: number;
  /** How often a fence came a second time, from another holder. Must be 0. */
  readonly repeated: number;
}

/** The database that the locks protect. It decides and writes in one step, so that nothing comes in between. */
export interface Ledger {
  /** @returns the balance read or written; null: refused, because the fence is too small */
  execute(request: LedgerRequest): number | null;
  balances(): Balance[];
  /** By event, the runs that left an effect, in the order of the file. */
  effects(): Map<string, string[]>;
  close(): void;
}

interface AccountFile {
  readonly account: Account;
  readonly path: string;
  readonly file: number;
  balance: number;
  fence: number;
  acknowledged: number;
  refused: number;
  repeated: number;
}

/** A ledger whose accounts are files of JSON lines in `directory`. */
export function openLedger(directory: string, accounts: readonly Account[]): Ledger {
  const files = new Map(accounts.map((account) => [account.name, openAccount(directory, account)]));
  const effectsPath = join(directory, "effects.jsonl");
  const effectsFile = openSync(effectsPath, "a");

  return {
    execute(request) {
      if (request.kind === "effect") {
        writeSync(effectsFile, `${JSON.stringify(request)}\n`);
        return 0;
      }
      const account = files.get(request.account)!;
      switch (request.kind) {
        case "read":
          return account.balance;
        case "open":
          return open(account, request.fence);
        case "write":
          return write(account, request.balance, request.fence);
      }
    },
    balances: () =>
      Array.from(files.values(), ({ account, path, acknowledged, refused, repeated }) => {
        const last = lines<{ balance: number }>(path).at(-1);
        return { account, acknowledged, final: last?.balance ?? 0, refused, repeated };
      }),
    effects() {
      const runs = new Map<string, string[]>();
      for (const { event, run } of lines<{ event: string; run: string }>(effectsPath)) {
        runs.set(event, [...(runs.get(event) ?? []), run]);
      }
      return runs;
    },
    close() {
      for (const { file } of files.values()) closeSync(file);
      closeSync(effectsFile);
    },
  };
}

function openAccount(directory: string, account: Account): AccountFile {
  const path = join(directory, `${account.name}.jsonl`);
  const file = openSync(path, "a");
  return { account, path, file, balance: 0, fence: 0, acknowledged: 0, refused: 0, repeated: 0 };
}

/** From now on smaller fences are refused, so that what is read stays true until the opener writes. */
function open(account: AccountFile, fence: number): number | null {
  if (fence === account.fence) account.repeated += 1;
  if (fence <= account.fence) return refuse(account);
  account.fence = fence;
  return account.balance;
}

function write(account: AccountFile, balance: number, fence: number): number | null {
  const { guard } = account.account;
  if (guard === "opened" && fence !== account.fence) return refuse(account);
  if (guard === "greater") {
    if (fence === account.fence) account.repeated += 1;
    if (fence <= account.fence) return refuse(account);
    account.fence = fence;
  }
  writeSync(account.file, `${JSON.stringify({ balance, fence })}\n`);
  account.balance = balance;
  account.acknowledged += 1;
  return balance;
}

function refuse(account: AccountFile): null {
  account.refused += 1;
  return null;
}

function lines<Line>(path: string): Line[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);
}
