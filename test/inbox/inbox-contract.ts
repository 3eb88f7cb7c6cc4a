import { beforeEach, describe, expect, test } from "vitest";
import { type InboxEntry, type PruneOptions, StaleFenceError } from "../../src/inbox/index.ts";
import { outcomeOf } from "../support/outcomes.ts";

/** One way into an inbox, in a database with the table `done (id, what, n)` for effects, in which n counts the rows. */
export interface Inbox {
  /**
   * A delivery, whose effect is a row with the key as JSON. It is called again as often as the database asks for that.
   *
   * @param what null violates a constraint. Default "paid"
   */
  once(entry: InboxEntry, what?: string | null): Promise<{ readonly first: boolean }>;
  prune(options: Omit<PruneOptions, "dialect">): Promise<void>;
  query(sql: string): Promise<Record<string, unknown>[]>;
  /** SQL for the time of two days ago, in a column `at`. */
  readonly twoDaysAgo: string;
}

export const tables: readonly string[] = ["redlock_inbox", "redlock_fences", "redlock_versions"];

const stale = { first: false, stale: true };
const entity = "invoice:42";

/** What every way promises, on every database. */
export function inboxContract(inbox: Inbox): void {
  beforeEach(async () => {
    for (const table of [...tables, "done"]) await inbox.query(`DELETE FROM ${table}`);
  });
  keysContract(inbox);
  namesContract(inbox);
  describe.each(["fence", "version"] as const)("with a %s", (kind) => markContract(kind, inbox));
  bothContract(inbox);
  pruneContract(inbox);
}

/** The keys of the effects, sorted. */
export async function effectsIn({ query }: Pick<Inbox, "query">): Promise<unknown[]> {
  return (await query("SELECT id FROM done")).map(({ id }) => JSON.parse(String(id))).sort();
}

export async function countsIn({ query }: Pick<Inbox, "query">): Promise<number[]> {
  const counts = tables.map((table) => query(`SELECT count(*) AS n FROM ${table}`));
  return (await Promise.all(counts)).map(([row]) => Number(row!.n));
}

function keysContract(inbox: Inbox): void {
  test("the first call commits effect and key, and later ones change nothing", async () => {
    for (const key of ["a", ["a", "b"]]) {
      expect((await inbox.once({ key, entity, fence: 1 })).first).toBe(true);
      expect(await inbox.once({ key, entity, fence: 1 })).toEqual({ first: false });
    }
    expect(await effectsIn(inbox)).toEqual(["a", ["a", "b"]]);
  });

  test("a failed effect undoes everything, and its error is its own", async () => {
    const error = /NOT NULL constraint|not-null constraint|cannot be null/;
    await inbox.once({ key: "a", entity, fence: 5, version: 5 });
    await expect(inbox.once({ key: "b", entity, fence: 9, version: 9 }, null)).rejects.toThrow(error);
    expect((await inbox.once({ key: "b", entity, fence: 6, version: 6 })).first).toBe(true);
  });

  test("of 20 calls with one key at once, one has the effect", async () => {
    const calls = Array.from({ length: 20 }, () => inbox.once({ key: "a" }));
    expect((await Promise.all(calls)).filter(({ first }) => first)).toHaveLength(1);
    expect(await effectsIn(inbox)).toEqual(["a"]);
  });
}

function namesContract(inbox: Inbox): void {
  test("keys and entities are compared byte by byte", async () => {
    const names =
      "evt_a|EVT_A|evt_a | evt_a|evt_a\u0308|evt_\u00e4|ﬀ|ff|ß|ss|1|01|дієслово 🧾|$1 ? :a @b {0}".split("|");
    names.push(`a'; DROP TABLE done; --"\\`, ...["a", "b"].map((last) => "€".repeat(795) + last));
    for (const [index, name] of names.entries()) {
      const number = names.length - index;
      const entry = { key: name, entity: name, fence: number, version: number };
      expect((await inbox.once(entry)).first, name).toBe(true);
    }
    for (const key of ["\uD83D", "\uD83E", "a\0b", "a\0c"])
      expect((await inbox.once({ key })).first, key).toBe(true);
    expect(await countsIn(inbox)).toEqual([names.length + 4, names.length, names.length]);
    for (const key of [...names, "\uD83D", "a\0b"])
      expect(await inbox.once({ key }), key).toEqual({ first: false });
  });
}

function markContract(kind: "fence" | "version", inbox: Inbox): void {
  const isFirst = async (key: string, number: number | bigint, of = entity) =>
    (await inbox.once({ key, entity: of, [kind]: number })).first;
  /** Whether it is refused: a fence is an error, a version is entered without its effect. */
  const isStale = async (key: string, number: number | bigint) => {
    const { error, value } = await outcomeOf(inbox.once({ key, entity, [kind]: number }));
    if (kind === "version") return expect(value).toEqual(stale);
    expect(error).toBeInstanceOf(StaleFenceError);
    expect(error).toMatchObject({ code: "STALE_FENCE", entity, fence: BigInt(number) });
  };

  test("a lower one writes nothing, an equal and a higher one do", async () => {
    expect(await isFirst("a", 5)).toBe(true);
    expect(await isFirst("b", 5n)).toBe(true);
    await isStale("c", 4);
    expect(await isFirst("d", 6)).toBe(true);
    expect(await isFirst("e", 1, "invoice:43")).toBe(true);
    // A delivery that its fence refuses is not entered, and one that its version refuses is.
    expect(await isFirst("c", 7)).toBe(kind === "fence");
    expect(await inbox.once({ key: "a", entity, [kind]: 5 })).toEqual({ first: false });
    expect(await effectsIn(inbox)).toEqual(["a", "b", ...(kind === "fence" ? ["c"] : []), "d", "e"]);
  });

  test("beyond 2^53 they are compared exactly", async () => {
    const number = 2n ** 53n;
    expect(await isFirst("a", number + 1n)).toBe(true);
    await isStale("b", number);
    expect(await isFirst("c", number + 1n)).toBe(true);
    // As doubles, these two are equal.
    expect(await isFirst("d", number + 4n)).toBe(true);
    await isStale("e", number + 3n);
    expect(await isFirst("f", 2n ** 63n - 1n)).toBe(true);
  });

  test("of concurrent writers none writes after a higher one", async () => {
    const numbers = Array.from({ length: 20 }, (_, index) => ((index * 7) % 20) + 1);
    const outcomes = await Promise.allSettled(
      numbers.map((number) => inbox.once({ key: `${number}`, entity, [kind]: number }, `${number}`)),
    );
    const order = (await inbox.query("SELECT what FROM done ORDER BY n")).map(({ what }) => Number(what));
    expect(order).toContain(20);
    expect(order).toEqual([...order].sort((a, b) => a - b));
    const firsts = outcomes.filter((outcome) => outcome.status === "fulfilled" && outcome.value.first);
    expect(firsts).toHaveLength(order.length);
  });
}

function bothContract(inbox: Inbox): void {
  const { once } = inbox;

  test("a version may be a time, in ms", async () => {
    expect((await once({ key: "a", entity, version: new Date(1_000) })).first).toBe(true);
    expect(await once({ key: "b", entity, version: 999 })).toEqual(stale);
    expect((await once({ key: "c", entity, version: 1_000 })).first).toBe(true);
  });

  test("of a fence and a version the fence comes first, and where it is stale, nothing is entered", async () => {
    const staleFence = async (entry: InboxEntry) =>
      expect((await outcomeOf(once(entry))).error).toBeInstanceOf(StaleFenceError);
    await once({ key: "a", entity, fence: 5, version: 5 });
    for (const version of [4, 6]) await staleFence({ key: "b", entity, fence: 4, version });
    expect(await once({ key: "b", entity, fence: 7, version: 4 })).toEqual(stale);
    // What was stale has raised the fence of its holder, and no version was raised.
    await staleFence({ key: "c", entity, fence: 6 });
    expect((await once({ key: "c", entity, fence: 7, version: 5 })).first).toBe(true);
    expect(await effectsIn(inbox)).toEqual(["a", "c"]);
  });
}

function pruneContract(inbox: Inbox): void {
  test("prune deletes what is older, at most so many rows of each table", async () => {
    const { once, prune, query, twoDaysAgo } = inbox;
    const enter = (key: string) => once({ key, entity: key, fence: 1, version: 1 });
    for (const key of ["a", "b", "c"]) await enter(key);
    for (const table of tables) await query(`UPDATE ${table} SET at = ${twoDaysAgo}`);
    await enter("new");
    await prune({ olderThan: 3 * 86_400_000 });
    expect(await countsIn(inbox)).toEqual([4, 4, 4]);
    await prune({ olderThan: 86_400_000.5, limit: 2 });
    expect(await countsIn(inbox)).toEqual([2, 2, 2]);
    await prune({ olderThan: 86_400_000 });
    expect(await countsIn(inbox)).toEqual([1, 1, 1]);
    expect(await enter("new")).toEqual({ first: false });
  });
}
