import { describe, expect, test } from "vitest";
import { type InboxEntry, StaleFenceError } from "../../src/inbox/index.ts";
import { outcomeOf } from "../support/outcomes.ts";

/** An inbox with a table of effects. */
export interface VersionedInbox {
  /** Writes an effect once. */
  once(key: string, entry: Omit<InboxEntry, "key">, what?: string): Promise<{ readonly first: boolean }>;
  /** Runs an effect that fails. */
  fail(key: string, entry: Omit<InboxEntry, "key">): Promise<unknown>;
  /** The keys of the effects, sorted. */
  effects(): Promise<unknown[]>;
  /** What the effects were, in the order in which they were written. */
  written(): Promise<number[]>;
}

/** What versions promise on every database. */
export function versionsContract({ once, fail, effects, written }: VersionedInbox): void {
  const entity = "invoice:42";

  describe("with a version", () => {
    test("an older one is entered without its effect, an equal and a newer one have theirs", async () => {
      expect((await once("a", { entity, version: 5 })).first).toBe(true);
      expect((await once("b", { entity, version: 5n })).first).toBe(true);
      expect(await once("c", { entity, version: 4 })).toEqual({ first: false, stale: true });
      // The sender need not come again: what is entered is only repeated, whatever its version.
      expect(await once("c", { entity, version: 4 })).toEqual({ first: false });
      expect(await once("c", { entity, version: 9 })).toEqual({ first: false });
      expect((await once("d", { entity, version: 6 })).first).toBe(true);
      expect((await once("e", { entity: "invoice:43", version: 0 })).first).toBe(true);
      expect(await effects()).toEqual(["a", "b", "d", "e"]);
    });

    test("a time is in ms, and beyond 2^53 they are compared exactly", async () => {
      expect((await once("a", { entity, version: new Date(1_000) })).first).toBe(true);
      expect(await once("b", { entity, version: 999 })).toEqual({ first: false, stale: true });
      expect((await once("c", { entity, version: 1_000 })).first).toBe(true);
      expect((await once("d", { entity, version: 2n ** 53n + 1n })).first).toBe(true);
      expect(await once("e", { entity, version: 2n ** 53n })).toEqual({ first: false, stale: true });
      expect((await once("f", { entity, version: 2n ** 63n - 1n })).first).toBe(true);
    });

    test("a failed effect does not raise it", async () => {
      await once("a", { entity, version: 5 });
      await expect(fail("b", { entity, version: 9 })).rejects.toThrow();
      expect((await once("c", { entity, version: 6 })).first).toBe(true);
    });

    test("and a fence: a stale fence comes first, and nothing is entered", async () => {
      await once("a", { entity, fence: 5, version: 5 });
      for (const version of [4, 6]) {
        const { error } = await outcomeOf(once("b", { entity, fence: 4, version }));
        expect(error).toBeInstanceOf(StaleFenceError);
      }
      expect(await once("b", { entity, fence: 7, version: 4 })).toEqual({ first: false, stale: true });
      // What was stale has raised the fence of its holder, and no version was raised.
      expect((await outcomeOf(once("c", { entity, fence: 6 }))).error).toBeInstanceOf(StaleFenceError);
      expect((await once("c", { entity, fence: 7, version: 5 })).first).toBe(true);
      expect(await effects()).toEqual(["a", "c"]);
    });

    test("of concurrent writers none writes after a newer one", async () => {
      const versions = Array.from({ length: 12 }, (_, index) => (index * 7) % 12);
      const outcomes = await Promise.all(
        versions.map((version) => once(`${version}`, { entity, version }, `${version}`)),
      );
      const order = await written();
      expect(order).toContain(11);
      expect(order).toEqual([...order].sort((a, b) => a - b));
      expect(outcomes.filter(({ first }) => first)).toHaveLength(order.length);
    });
  });
}
