import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Account, Question } from "./records.ts";

/** What became of one account. */
export interface Balance {
  readonly account: Account;
  /** Writes that were acknowledged; each meant to add 1. */
  readonly acknowledged: number;
  /** What its file says in the end. */
  readonly final: number;
  /** Opens and writes that came with too old a fence. */
  readonly refused: number;
  /** Two holders came with the same fence: there must not be any. */
  readonly repeated: number;
}

/** The database that the locks protect: decides and writes in one step, so nothing comes in between. */
export interface Ledger {
  /** The balance read or written; null when the fence is too old. */
  answer(question: Question): number | null;
  balances(): Balance[];
  /** By event, the runs that left an effect, in order; as the file says. */
  effects(): Map<string, string[]>;
  close(): void;
}

interface Book {
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
  const books = new Map(accounts.map((account) => [account.name, openBook(directory, account)]));
  const effectsPath = join(directory, "effects.jsonl");
  const effectsFile = openSync(effectsPath, "a");

  return {
    answer(question) {
      if (question.ask === "effect") {
        writeSync(effectsFile, `${JSON.stringify(question)}\n`);
        return 0;
      }
      const book = books.get(question.account)!;
      switch (question.ask) {
        case "read":
          return book.balance;
        case "open":
          return open(book, question.fence);
        case "write":
          return write(book, question.balance, question.fence);
      }
    },
    balances: () =>
      Array.from(books.values(), ({ account, path, acknowledged, refused, repeated }) => {
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
      for (const { file } of books.values()) closeSync(file);
      closeSync(effectsFile);
    },
  };
}

function openBook(directory: string, account: Account): Book {
  const path = join(directory, `${account.name}.jsonl`);
  const file = openSync(path, "a");
  return { account, path, file, balance: 0, fence: 0, acknowledged: 0, refused: 0, repeated: 0 };
}

/** From now on nobody with an older fence writes, and what is read stays true until the opener writes. */
function open(book: Book, fence: number): number | null {
  if (fence === book.fence) book.repeated += 1;
  if (fence <= book.fence) return refuse(book);
  book.fence = fence;
  return book.balance;
}

function write(book: Book, balance: number, fence: number): number | null {
  const { guard } = book.account;
  if (guard === "opened" && fence !== book.fence) return refuse(book);
  if (guard === "greater") {
    if (fence === book.fence) book.repeated += 1;
    if (fence <= book.fence) return refuse(book);
    book.fence = fence;
  }
  writeSync(book.file, `${JSON.stringify({ balance, fence })}\n`);
  book.balance = balance;
  book.acknowledged += 1;
  return balance;
}

function refuse(book: Book): null {
  book.refused += 1;
  return null;
}

function lines<Line>(path: string): Line[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);
}
