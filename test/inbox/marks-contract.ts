import { describe, expect, test } from "vitest";
import { type InboxEntry, StaleFenceError } from "../../src/inbox/index.ts";
import { outcomeOf } from "../support/outcomes.ts";

type Entry = Omit<InboxEntry, "key">;

/** An inbox with a table of effects. */
export interface MarkedInbox {
  /** Writes an effect once. */
  once(key: string, entry: Entry, what?: string): Promise<{ readonly first: boolean }>;
  /** Runs an effect that fails. */
  fail(key: string, entry: Entry): Promise<unknown>;
  /** The keys of the effects, sorted. */
  effects(): Promise<unknown[]>;
  /** What the effects were, in the order in which they were written. */
  written(): Promise<number[]>;
  /** The fence that is stored for an entity. */
  stored(entity: string): Promise<number>;
}

const stale = { first: false, stale: true };

const entity = "invoice:42";

/** What fences and versions promise on every database. */
export function marksContract(inbox: MarkedInbox): void {
  markContract("fence", inbox);
  markContract("version", inbox);
  bothContract(inbox);
}

function markContract(
  kind: "fence" | "version",
  { once, fail, effects, written, stored }: MarkedInbox,
): void {
  describe(`with a ${kind}`, () => {
    const isFirst = async (key: string, number: number | bigint, of = entity) =>
      (await once(key, { entity: of, [kind]: number })).first;
    /** Whether it is refused: a fence is an error, a version is entered without its effect. */
    const isStale = async (key: string, number: number | bigint) => {
      const { error, value } = await outcomeOf(once(key, { entity, [kind]: number }));
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
      // What was refused by its fence is not entered, by its version it is; what was entered is only repeated.
      expect(await isFirst("c", 7)).toBe(kind === "fence");
      expect(await once("a", { entity, [kind]: 5 })).toEqual({ first: false });
      expect(await effects()).toEqual(["a", "b", ...(kind === "fence" ? ["c"] : []), "d", "e"]);
      if (kind === "fence") expect(await stored(entity)).toBe(7);
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

    test("a failed effect does not raise it, and its error is its own", async () => {
      await isFirst("a", 5);
      const error = /NOT NULL constraint|not-null constraint|cannot be null/;
      await expect(fail("b", { entity, [kind]: 9 })).rejects.toThrow(error);
      expect(await isFirst("b", 6)).toBe(true);
    });

    test("of concurrent writers none writes after a higher one", async () => {
      const numbers = Array.from({ length: 20 }, (_, index) => ((index * 7) % 20) + 1);
      const outcomes = await Promise.allSettled(
        numbers.map((number) => once(`${number}`, { entity, [kind]: number }, `${number}`)),
      );
      const order = await written();
      expect(order).toContain(20);
      expect(order).toEqual([...order].sort((a, b) => a - b));
      const firsts = outcomes.filter((outcome) => outcome.status === "fulfilled" && outcome.value.first);
      expect(firsts).toHaveLength(order.length);
    });
  });
}

function bothContract({ once, effects }: MarkedInbox): void {
  test("a version may be a time, in ms", async () => {
    expect((await once("a", { entity, version: new Date(1_000) })).first).toBe(true);
    expect(await once("b", { entity, version: 999 })).toEqual(stale);
    expect((await once("c", { entity, version: 1_000 })).first).toBe(true);
  });

  test("of a fence and a version the fence comes first, and where it is stale, nothing is entered", async () => {
    await once("a", { entity, fence: 5, version: 5 });
    for (const version of [4, 6]) {
      const { error } = await outcomeOf(once("b", { entity, fence: 4, version }));
      expect(error).toBeInstanceOf(StaleFenceError);
    }
    expect(await once("b", { entity, fence: 7, version: 4 })).toEqual(stale);
    // What was stale has raised the fence of its holder, and no version was raised.
    expect((await outcomeOf(once("c", { entity, fence: 6 }))).error).toBeInstanceOf(StaleFenceError);
    expect((await once("c", { entity, fence: 7, version: 5 })).first).toBe(true);
    expect(await effects()).toEqual(["a", "c"]);
  });
}
