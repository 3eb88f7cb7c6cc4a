import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  type Execute,
  type InboxEntry,
  onceInTransaction,
  pruneInbox,
  StaleFenceError,
} from "../../src/inbox/index.ts";
import { gate } from "../support/link.ts";
import { outcomeOf } from "../support/outcomes.ts";
import { type Library, libraries } from "./libraries.ts";
import { marksContract } from "./marks-contract.ts";

/** A database of the tests, with the table `done (id, what, n)`, in which n counts the rows. */
export interface Database {
  readonly dialect: "postgres" | "mysql" | "sqlite";
  /** Its URL, once it has started. */
  url(): string;
  /** Whether an error says that the transaction may be called again. */
  mayRepeat(error: unknown): boolean;
  /** SQL for the time of two days ago, in a column `at`. */
  readonly twoDaysAgo: string;
}

const tables = ["redlock_inbox", "redlock_fences", "redlock_versions"];

/** What `onceInTransaction` promises on every database, through every library. */
export function transactionsContract(database: Database): void {
  describe("onceInTransaction", () => {
    const inbox = new Inbox(database);
    beforeAll(() => inbox.open());
    afterAll(() => inbox.library.close());
    beforeEach(async () => {
      for (const table of [...tables, "done"]) await inbox.library.execute(`DELETE FROM ${table}`, []);
    });
    entitiesContract(inbox);
    concurrencyContract(inbox);
    textsContract(inbox);
    librariesContract(inbox);
    prunes(inbox);
  });
}

/** The inbox of a database, and effects: rows in the table `done`. */
class Inbox {
  readonly database: Database;
  /** The dialect's first one. */
  library!: Library;

  constructor(database: Database) {
    this.database = database;
  }

  async open(): Promise<void> {
    this.library = await libraries[this.database.dialect][0]![1](this.database.url());
  }

  enter(execute: Execute, entry: InboxEntry) {
    return onceInTransaction(execute, entry, { dialect: this.database.dialect });
  }

  /** Writes an effect; null violates a constraint. */
  write(execute: Execute, id: string, what: string | null = "paid") {
    const values = this.database.dialect === "postgres" ? "$1, $2" : "?, ?";
    return execute(`INSERT INTO done (id, what) VALUES (${values})`, [id, what as string]);
  }

  /** A delivery in a transaction of its own. */
  once(entry: InboxEntry, what?: string | null, library = this.library) {
    return library.transaction(async (execute) => {
      const outcome = await this.enter(execute, entry);
      if (outcome.first) await this.write(execute, String(entry.key), what);
      return outcome;
    });
  }

  /** A call, as often as the database says that it may be repeated. */
  async repeated<Value>(call: () => Promise<Value>): Promise<Value> {
    for (;;) {
      const { error, value } = await outcomeOf(call());
      if (error === undefined) return value as Value;
      if (!this.database.mayRepeat(error)) throw error;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async rows(sql: string): Promise<Record<string, unknown>[]> {
    const result = (await this.library.execute(sql, [])) as { rows?: unknown } & unknown[];
    return (result.rows ?? result[0]) as never;
  }

  async effects(): Promise<unknown[]> {
    return (await this.rows("SELECT id FROM done")).map(({ id }) => id).sort();
  }

  async count(table: string): Promise<number> {
    return Number((await this.rows(`SELECT count(*) AS n FROM ${table}`))[0]!.n);
  }
}

function entitiesContract(inbox: Inbox): void {
  marksContract({
    once: (key: string, entry: Omit<InboxEntry, "key">, what?: string) =>
      inbox.repeated(() => inbox.once({ key, ...entry }, what)),
    fail: (key: string, entry: Omit<InboxEntry, "key">) => inbox.once({ key, ...entry }, null),
    effects: () => inbox.effects(),
    written: async () =>
      (await inbox.rows("SELECT what FROM done ORDER BY n")).map(({ what }) => Number(what)),
    stored: async (entity) =>
      Number((await inbox.rows(`SELECT fence FROM redlock_fences WHERE entity = '${entity}'`))[0]!.fence),
  });

  test("a stale fence enters nothing, even where its error is caught and the transaction commits", async () => {
    await inbox.once({ key: "a", entity: "e", fence: 5 });
    await inbox.library.transaction(async (execute) => {
      const { error } = await outcomeOf(inbox.enter(execute, { key: "b", entity: "e", fence: 4 }));
      expect(error).toBeInstanceOf(StaleFenceError);
    });
    expect(await inbox.once({ key: "b", entity: "e", fence: 5 })).toEqual({ first: true });
  });
}

function concurrencyContract(inbox: Inbox): void {
  test("of 20 transactions with one key at once, one has the effect", async () => {
    const calls = Array.from({ length: 20 }, () => inbox.repeated(() => inbox.once({ key: "a" })));
    expect((await Promise.all(calls)).filter(({ first }) => first)).toHaveLength(1);
    expect(await inbox.effects()).toEqual(["a"]);
  });

  test("a crash between the key and the commit: the next delivery, which waits, has the effect", async () => {
    const entered = gate();
    const hold = gate();
    const dying = outcomeOf(
      inbox.library.transaction(async (execute) => {
        await inbox.enter(execute, { key: "a" });
        await inbox.write(execute, "a");
        entered.open();
        await hold.passed;
        throw new Error("it dies");
      }),
    );
    await entered.passed;
    const next = inbox.repeated(() => inbox.once({ key: "a" }));
    hold.open();
    expect((await dying).error).toEqual(new Error("it dies"));
    expect(await next).toEqual({ first: true });
    expect(await inbox.effects()).toEqual(["a"]);
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

function textsContract(inbox: Inbox): void {
  test.each([
    ["quotes", `a'; DROP TABLE done; --"\\`],
    ["other scripts and emoji", "дієслово 🧾"],
    ["half of an emoji", "\uD83D"],
    ["a null character", "a\0b"],
    ["placeholders", "$1 ? :a @b {0}"],
    ["796 characters", "x".repeat(796)],
    ["796 characters of three bytes", "€".repeat(796)],
  ])("a key with %s", async (_what, key) => {
    // Without an effect: not every column takes such a text.
    const once = (given: string) =>
      inbox.library.transaction((execute) => inbox.enter(execute, { key: given }));
    expect(await once(key)).toEqual({ first: true });
    expect(await once(key)).toEqual({ first: false });
    expect(await once(key.slice(0, -1) || "\uD83E")).toEqual({ first: true });
  });

  test("keys and entities are compared byte by byte", async () => {
    const names = "evt_a|EVT_A|evt_a | evt_a|evt_a\u0308|evt_\u00e4|ﬀ|ff|ß|ss|1|01".split("|");
    for (const [index, name] of names.entries()) {
      const number = names.length - index;
      const entry = { key: name, entity: name, fence: number, version: number };
      expect(await inbox.once(entry)).toEqual({ first: true });
    }
    expect(await Promise.all(tables.map((table) => inbox.count(table)))).toEqual(
      tables.map(() => names.length),
    );
  });

  test("entities that differ in the last of 800 characters", async () => {
    for (const [fence, last] of ["b", "a"].entries()) {
      const entity = "€".repeat(799) + last;
      const entry = { key: last, entity, fence: 2 - fence, version: 2 - fence };
      expect(await inbox.once(entry)).toEqual({ first: true });
    }
  });
}

function librariesContract(inbox: Inbox): void {
  const { dialect, url } = inbox.database;
  describe.each(libraries[dialect])("through %s", (_name, open) => {
    let library: Library;
    beforeAll(async () => {
      library = await open(url());
    });
    afterAll(() => library.close());

    test("first, repeated, stale and rolled back; a duplicate leaves its transaction usable", async () => {
      const once = (entry: InboxEntry, what?: null) => inbox.once(entry, what, library);
      expect(await once({ key: "a", entity: "e", fence: 3, version: 3 })).toEqual({ first: true });
      await library.transaction(async (execute) => {
        expect(await inbox.enter(execute, { key: "a" })).toEqual({ first: false });
        expect(await inbox.enter(execute, { key: "b" })).toEqual({ first: true });
        expect(await inbox.enter(execute, { key: "b" })).toEqual({ first: false });
        await inbox.write(execute, "b");
      });
      const failing = await outcomeOf(once({ key: "c", entity: "e", fence: 9, version: 9 }, null));
      expect(failing.error).toBeDefined();
      const { error } = await outcomeOf(once({ key: "c", entity: "e", fence: 2 }));
      expect(error).toBeInstanceOf(StaleFenceError);
      expect(await once({ key: "c", entity: "e", version: 2 })).toEqual({ first: false, stale: true });
      expect(await once({ key: "d", entity: "e", fence: 4, version: 4 })).toEqual({ first: true });
      expect(await inbox.effects()).toEqual(["a", "b", "d"]);
      await pruneInbox(library.execute, { olderThan: 86_400_000, dialect });
      expect(await inbox.count("redlock_inbox")).toBe(4);
    });

    const outside = () =>
      test("outside of a transaction it is refused, and nothing is entered", async () => {
        const { error } = await outcomeOf(inbox.enter(library.execute, { key: "a" }));
        expect(String(error)).toMatch(/^Error: execute must run .* in an open transaction/);
        expect(await inbox.count("redlock_inbox")).toBe(0);
      });
    // SQLite cannot tell.
    if (dialect !== "sqlite") outside();

    test("missing tables, and the statements of another database: the error says what to do", async () => {
      const errorOf = async (given: Database["dialect"], entry: Omit<InboxEntry, "key">) => {
        const call = library.transaction((execute) =>
          onceInTransaction(execute, { key: "a", ...entry }, { dialect: given }),
        );
        return String((await outcomeOf<unknown>(call)).error);
      };
      const wrong = dialect === "postgres" ? "mysql" : "postgres";
      expect(await errorOf(wrong, {})).toMatch(/^Error: .* option dialect/);
      await inbox.library.execute("ALTER TABLE redlock_versions RENAME TO elsewhere", []);
      const missing = await errorOf(dialect, { entity: "e", version: 1 });
      await inbox.library.execute("ALTER TABLE elsewhere RENAME TO redlock_versions", []);
      expect(missing).toMatch(/^Error: .* apply \w+Schema$/);
      expect(await inbox.count("redlock_inbox")).toBe(0);
    });
  });
}

function prunes(inbox: Inbox): void {
  test("prune deletes what is older, at most so many rows of each table", async () => {
    const { dialect, twoDaysAgo } = inbox.database;
    const { execute } = inbox.library;
    const once = (key: string) => inbox.once({ key, entity: key, fence: 1, version: 1 });
    for (const key of ["a", "b", "c"]) await once(key);
    for (const table of tables) await execute(`UPDATE ${table} SET at = ${twoDaysAgo}`, []);
    await once("new");
    const counts = () => Promise.all(tables.map((table) => inbox.count(table)));
    await pruneInbox(execute, { olderThan: 3 * 86_400_000, dialect });
    expect(await counts()).toEqual([4, 4, 4]);
    await pruneInbox(execute, { olderThan: 86_400_000.5, limit: 2, dialect });
    expect(await counts()).toEqual([2, 2, 2]);
    await pruneInbox(execute, { olderThan: 86_400_000, dialect });
    expect(await counts()).toEqual([1, 1, 1]);
    expect(await once("new")).toEqual({ first: false });
  });
}
