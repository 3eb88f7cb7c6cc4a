import { describe, expect, test } from "vitest";
import { type InboxEntry, StaleFenceError } from "../../src/inbox/index.ts";
import { outcomeOf } from "../support/outcomes.ts";

type Fence = Pick<InboxEntry, "entity" | "fence">;

/** An inbox with a table of effects. */
export interface FencedInbox {
  /** Writes an effect once. */
  once(key: string, fence: Fence, what?: string): Promise<{ readonly first: boolean }>;
  /** Runs an effect that fails. */
  fail(key: string, fence: Fence): Promise<unknown>;
  /** The keys of the effects, sorted. */
  effects(): Promise<unknown[]>;
  /** What the effects were, in the order in which they were written. */
  written(): Promise<number[]>;
  /** The fence that is stored for an entity. */
  stored(entity: string): Promise<number>;
}

/** What fences promise on every database. */
export function fencesContract({ once, fail, effects, written, stored }: FencedInbox): void {
  const entity = "invoice:42";

  describe("with a fence", () => {
    test("a lower one writes nothing, an equal and a higher one do", async () => {
      expect((await once("a", { entity, fence: 5 })).first).toBe(true);
      expect((await once("b", { entity, fence: 5 })).first).toBe(true);
      const { error } = await outcomeOf(once("c", { entity, fence: 4 }));
      expect(error).toBeInstanceOf(StaleFenceError);
      expect(error).toMatchObject({ code: "STALE_FENCE", entity, fence: 4n });
      expect((await once("d", { entity, fence: 6n })).first).toBe(true);
      expect((await once("e", { entity: "invoice:43", fence: 1 })).first).toBe(true);
      // What was refused is not entered; what was entered is only repeated, however old its fence.
      expect((await once("c", { entity, fence: 7 })).first).toBe(true);
      expect(await once("a", { entity, fence: 5 })).toEqual({ first: false });
      expect(await effects()).toEqual(["a", "b", "c", "d", "e"]);
      expect(await stored(entity)).toBe(7);
    });

    test("beyond 2^53 they are compared exactly", async () => {
      const fence = 2n ** 53n;
      await once("a", { entity, fence: fence + 1n });
      expect((await outcomeOf(once("b", { entity, fence }))).error).toBeInstanceOf(StaleFenceError);
      expect((await once("c", { entity, fence: fence + 1n })).first).toBe(true);
      // As doubles, these two are equal.
      await once("e", { entity, fence: fence + 4n });
      const lower = await outcomeOf(once("f", { entity, fence: fence + 3n }));
      expect(lower.error).toBeInstanceOf(StaleFenceError);
      expect((await once("d", { entity, fence: 2n ** 63n - 1n })).first).toBe(true);
    });

    test("a failed effect does not raise it, and its error is its own", async () => {
      await once("a", { entity, fence: 5 });
      await expect(fail("b", { entity, fence: 9 })).rejects.toThrow(
        /NOT NULL constraint|not-null constraint|cannot be null/,
      );
      expect((await once("b", { entity, fence: 6 })).first).toBe(true);
    });

    test("of concurrent writers none writes after a higher one", async () => {
      const fences = Array.from({ length: 20 }, (_, index) => ((index * 7) % 20) + 1);
      await Promise.allSettled(fences.map((fence) => once(`${fence}`, { entity, fence }, `${fence}`)));
      const order = await written();
      expect(order).toContain(20);
      expect(order).toEqual([...order].sort((a, b) => a - b));
    });
  });
}
