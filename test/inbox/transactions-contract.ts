import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type Execute,
  type InboxEntry,
  onceInTransaction,
  pruneInbox,
  StaleFenceError,
} from "../../src/inbox/index.ts";
import { gate } from "../support/link.ts";
import { outcomeOf } from "../support/outcomes.ts";
import { countsIn, effectsIn, type Inbox, inboxContract, tables } from "./inbox-contract.ts";
import { type Library, libraries } from "./libraries.ts";

/** A database of the tests, with the table of effects. */
export interface Database {
  readonly dialect: "postgres" | "mysql" | "sqlite";
  /** Its URL, once it has started. */
  url(): string;
  /** Whether an error says that the transaction may be called again. */
  mayRepeat(error: unknown): boolean;
  readonly twoDaysAgo: string;
}

/** What `onceInTransaction` promises on every database, through every library. */
export function transactionsContract(database: Database): void {
  describe("onceInTransaction", () => {
    const inbox = new TransactionInbox(database);
    beforeAll(() => inbox.open());
    afterAll(() => inbox.library.close());
    inboxContract(inbox);
    commitsContract(inbox);
    describe.each(libraries[database.dialect])("through %s", (_name, open) => {
      let library: Library;
      beforeAll(async () => {
        library = await open(database.url());
      });
      afterAll(() => library.close());
      libraryContract(inbox, () => library);
    });
  });
}

class TransactionInbox implements Inbox {
  readonly database: Database;
  readonly twoDaysAgo: string;
  /** The dialect's first one. */
  library!: Library;

  constructor(database: Database) {
    this.database = database;
    this.twoDaysAgo = database.twoDaysAgo;
  }

  async open(): Promise<void> {
    this.library = await libraries[this.database.dialect][0]![1](this.database.url());
  }

  enter(execute: Execute, entry: InboxEntry) {
    return onceInTransaction(execute, entry, { dialect: this.database.dialect });
  }

  write(execute: Execute, { key }: InboxEntry, what: string | null = "paid") {
    const values = this.database.dialect === "postgres" ? "$1, $2" : "?, ?";
    return execute(`INSERT INTO done (id, what) VALUES (${values})`, [JSON.stringify(key), what as string]);
  }

  /** Once, in a transaction of its own. */
  attempt(entry: InboxEntry, what?: string | null, library = this.library) {
    return library.transaction(async (execute) => {
      const outcome = await this.enter(execute, entry);
      if (outcome.first) await this.write(execute, entry, what);
      return outcome;
    });
  }

  readonly once: Inbox["once"] = async (entry, what) => {
    for (;;) {
      const { error, value } = await outcomeOf(this.attempt(entry, what));
      if (error === undefined) return value!;
      if (!this.database.mayRepeat(error)) throw error;
      await new Promise((resolve) => setImmediate(resolve));
    }
  };

  readonly prune: Inbox["prune"] = (options) =>
    pruneInbox(this.library.execute, { ...options, dialect: this.database.dialect });

  readonly query: Inbox["query"] = async (sql) => {
    const result = (await this.library.execute(sql, [])) as { rows?: unknown } & unknown[];
    return (result.rows ?? result[0]) as never;
  };
}

function commitsContract(inbox: TransactionInbox): void {
  test("a stale fence enters nothing, even where its error is caught and the transaction commits", async () => {
    await inbox.once({ key: "a", entity: "e", fence: 5 });
    await inbox.library.transaction(async (execute) => {
      const { error } = await outcomeOf(inbox.enter(execute, { key: "b", entity: "e", fence: 4 }));
      expect(error).toBeInstanceOf(StaleFenceError);
    });
    expect(await inbox.once({ key: "b", entity: "e", fence: 5 })).toEqual({ first: true });
  });

  test("a crash between the key and the commit: the next delivery, which waits, has the effect", async () => {
    const entered = gate();
    const hold = gate();
    const dying = outcomeOf(
      inbox.library.transaction(async (execute) => {
        await inbox.enter(execute, { key: "a" });
        await inbox.write(execute, { key: "a" });
        entered.open();
        await hold.passed;
        throw new Error("it dies");
      }),
    );
    await entered.passed;
    const next = inbox.once({ key: "a" });
    hold.open();
    expect((await dying).error).toEqual(new Error("it dies"));
    expect(await next).toEqual({ first: true });
    expect(await effectsIn(inbox)).toEqual(["a"]);
  });

  // SQLite lets nobody else write meanwhile.
  if (inbox.database.dialect === "sqlite") return;

  test("a transaction that has read before sees the newest rows", async () => {
    await inbox.once({ key: "a", entity: "e", fence: 1, version: 1 });
    await inbox.library.transaction(async (execute) => {
      for (const table of tables) await execute(`SELECT * FROM ${table}`, []);
      await inbox.once({ key: "b", entity: "e", fence: 5, version: 5 });
      expect(await inbox.enter(execute, { key: "b" })).toEqual({ first: false });
      const { error } = await outcomeOf(inbox.enter(execute, { key: "c", entity: "e", fence: 1 }));
      expect(error).toBeInstanceOf(StaleFenceError);
      const stale = await inbox.enter(execute, { key: "c", entity: "e", version: 1 });
      expect(stale).toEqual({ first: false, stale: true });
    });
  });
}

function libraryContract(inbox: TransactionInbox, library: () => Library): void {
  const { dialect } = inbox.database;

  test("first, repeated, stale and rolled back; a duplicate leaves its transaction usable", async () => {
    const once = (entry: InboxEntry, what?: null) => inbox.attempt(entry, what, library());
    expect(await once({ key: "a", entity: "e", fence: 3, version: 3 })).toEqual({ first: true });
    await library().transaction(async (execute) => {
      expect(await inbox.enter(execute, { key: "a" })).toEqual({ first: false });
      expect(await inbox.enter(execute, { key: "b" })).toEqual({ first: true });
      expect(await inbox.enter(execute, { key: "b" })).toEqual({ first: false });
      await inbox.write(execute, { key: "b" });
    });
    expect(
      (await outcomeOf(once({ key: "c", entity: "e", fence: 9, version: 9 }, null))).error,
    ).toBeDefined();
    expect((await outcomeOf(once({ key: "c", entity: "e", fence: 2 }))).error).toBeInstanceOf(
      StaleFenceError,
    );
    expect(await once({ key: "c", entity: "e", version: 2 })).toEqual({ first: false, stale: true });
    expect(await effectsIn(inbox)).toEqual(["a", "b"]);
    await pruneInbox(library().execute, { olderThan: 86_400_000, dialect });
    expect(await countsIn(inbox)).toEqual([3, 1, 1]);
  });

  // SQLite cannot tell.
  if (dialect !== "sqlite") {
    test("outside of a transaction it is refused, and nothing is entered", async () => {
      const { error } = await outcomeOf(inbox.enter(library().execute, { key: "a" }));
      expect(String(error)).toMatch(/^Error: execute must run .* in an open transaction/);
      expect(await countsIn(inbox)).toEqual([0, 0, 0]);
    });
  }

  test("missing tables, and the statements of another database: the error says what to do", async () => {
    const errorOf = async (given: Database["dialect"], entry: Omit<InboxEntry, "key">) => {
      const call = library().transaction((execute) =>
        onceInTransaction(execute, { key: "a", ...entry }, { dialect: given }),
      );
      return String((await outcomeOf<unknown>(call)).error);
    };
    const wrong = dialect === "postgres" ? "mysql" : "postgres";
    expect(await errorOf(wrong, {})).toMatch(/^Error: .* option dialect/);
    await inbox.query("ALTER TABLE redlock_versions RENAME TO elsewhere");
    const missing = await errorOf(dialect, { entity: "e", version: 1 });
    await inbox.query("ALTER TABLE elsewhere RENAME TO redlock_versions");
    expect(missing).toMatch(/^Error: .* apply \w+Schema$/);
    expect(await countsIn(inbox)).toEqual([0, 0, 0]);
  });
}
