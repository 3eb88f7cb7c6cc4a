import { describe, expect, test } from "vitest";
import { EndpointError } from "../../../src/errors/errors.ts";
import { type IdempotencyOptions, ResultUnavailableError } from "../../../src/idempotency/index.ts";
import type { Link } from "../../support/link.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import { virtualWorld, watch } from "../../support/virtual-client.ts";
import { never, records, runner } from "../../support/virtual-runs.ts";

// Storing a result that endpoints refuse for its size, or that meets a late request of its own run, in virtual time.

const large = "x".repeat(2_000);
const stored = `C1 "${large}"`;
const tooLarge = "N1 too-large";

type Refusal = (name: string) => EndpointError;
const status413: Refusal = (name) => new EndpointError(name, "http", "HTTP 413", { status: 413 });

/** Refuses every command of more than 1 000 characters beside a script's text. */
function refuseLarge(links: readonly Link[], refusal: Refusal = status413): void {
  for (const link of links) {
    link.fate = (command) => {
      if (JSON.stringify(command.slice(2)).length <= 1_000) return "delivered";
      return {
        before: () => {
          throw refusal(link.name);
        },
      };
    };
  }
}

describe("a result that is refused for its size", () => {
  /** A run of which `refusing` endpoints refuse the large result, and what it leaves. */
  async function refusedBy(refusing: readonly number[], refusal?: Refusal, options: IdempotencyOptions = {}) {
    const world = virtualWorld();
    const { idempotency, links, started, events } = runner(world, { lease: 1_000, ...options });
    const call = watch(
      idempotency.run("key", () => {
        refuseLarge(
          links.filter((_, index) => refusing.includes(index)),
          refusal,
        );
        return large;
      }),
    );
    await started();
    return { ...world, world, links, call, events };
  }

  test("by a minority, is stored by the others", async () => {
    const { world, call } = await refusedBy([1]);
    expect(call.value).toEqual({ status: "executed", value: large });
    expect(records(world)).toEqual([stored, "P1", stored]);
  });

  test.each([[[0, 1, 2]], [[0, 2]]])(
    "by so many that no quorum is left (%j), is complete without it",
    async (refusing) => {
      const { world, call, events } = await refusedBy(refusing);
      expect(call.value).toEqual({ status: "executed", value: large, unstored: "too-large" });
      // Also where the result itself was stored before.
      expect(records(world)).toEqual([tooLarge, tooLarge, tooLarge]);
      expect(events).toMatchObject([{ type: "unstored", reason: "too-large" }]);
      expect(events[0]).not.toHaveProperty("error");
      const { error } = await outcomeOf(runner(world).idempotency.run("key", never));
      expect(error).toBeInstanceOf(ResultUnavailableError);
      expect(error).toMatchObject({ key: "key", reason: "too-large" });
    },
  );

  test.each<[string, Refusal]>([
    ["Upstash", (name) => new EndpointError(name, "redis", "ERR max request size exceeded")],
    ["Redis", (name) => new EndpointError(name, "redis", "ERR string exceeds MAXIMUM allowed size (512MB)")],
    ["a gateway", status413],
  ])("by %s, is complete without it", async (_who, refusal) => {
    const { world } = await refusedBy([0, 1], refusal);
    expect(records(world)).toEqual([tooLarge, tooLarge, tooLarge]);
  });
});
