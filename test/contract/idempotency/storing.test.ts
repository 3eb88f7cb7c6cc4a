import { describe, expect, test } from "vitest";
import type { IdempotencyOptions, RunOptions } from "../../../src/idempotency/index.ts";
import { until } from "../../support/until.ts";
import { delays, virtualWorld, watch } from "../../support/virtual-client.ts";
import { never, records, runner, running, silence, ttls } from "../../support/virtual-runs.ts";

// The rounds of idempotent runs in virtual time: how long results are kept, where they are written, and how long storing
// goes on. The timeout of a request is 100 ms.

describe("a result that an endpoint does not have", () => {
  /** A key that is complete on the first two of three endpoints. */
  async function completeOnTwo(handler: () => unknown) {
    const world = virtualWorld();
    const { idempotency, links } = runner(world);
    silence(links.slice(2));
    await idempotency.run<unknown>("key", handler);
    return world;
  }

  test("is written there by the next call, for what is left of its retention", async () => {
    const world = await completeOnTwo(() => "done");
    expect(ttls(world)).toEqual([60_000, 60_000, null]);
    await world.runtime.advance(20_000);
    expect(await runner(world).idempotency.run("key", never)).toEqual({ status: "replayed", value: "done" });
    expect(records(world)).toEqual(new Array(3).fill('C1 "done"'));
    expect(ttls(world)).toEqual([40_000, 40_000, 40_000]);
  });

  test("replaces no run under way, and nothing that is not a record", async () => {
    for (const [value, shown] of [
      ["P1 tother 1700000000000 -", "P1"],
      ["text of others", "text"],
    ] as const) {
      const world = await completeOnTwo(() => "done");
      const [name] = world.endpoints[0]!.engine.execute(["KEYS", "redlock:idem:*"]) as string[];
      world.endpoints[2]!.engine.execute(["SET", name!, value, "PX", 30_000]);
      expect((await runner(world).idempotency.run("key", never)).value).toBe("done");
      expect(records(world)[2]).toBe(shown);
    }
  });
});

describe("storing a result", () => {
  /** A run of 10 ms whose completion no endpoint answers, and the times at which it is tried. */
  async function unanswered(options: IdempotencyOptions & RunOptions<string>) {
    const world = virtualWorld();
    const { idempotency, links } = runner(world, options);
    const times: number[] = [];
    let isStoring = false;
    const start = world.runtime.now();
    for (const each of links) {
      each.fate = () => {
        if (!isStoring) return "delivered";
        if (each === links[0]) times.push(world.runtime.now() - start);
        return "refused";
      };
    }
    const call = watch(
      idempotency.run("key", () => {
        isStoring = true;
        return "done";
      }),
    );
    await until(() => isStoring, "the handler");
    await world.runtime.advance(0);
    return { ...world, call, times, links, start: () => world.runtime.now() - start };
  }
  const unstored = { status: "executed", value: "done", unstored: "no-quorum" };

  test("goes on for two timeouts before the call returns, and then until the lease ends", async () => {
    const { runtime, call, times } = await unanswered({ lease: 2_000, backoff: { min: 50, max: 50 } });
    await runtime.advance(199);
    expect(call.settled).toBe(false);
    await runtime.advance(1);
    expect(call.value).toEqual(unstored);
    await runtime.advance(20_000);
    // The validity of the lease is 2 000 ms less the drift.
    expect(times.at(-1)).toBeGreaterThanOrEqual(1_978);
    expect(times.at(-1)).toBeLessThanOrEqual(1_978 + 50);
    // Each release is sent once more at once.
    expect(times).toHaveLength(2 * 41);
    expect(runtime.pending).toBe(0);
  });
});

test.each<[what: string, fails: boolean, options: Pick<RunOptions<unknown>, "lock" | "maxAttempts">]>([
  ["that is stored", false, {}],
  ["that fails", true, {}],
  ["that is stored, with a lock", false, { lock: "till" }],
  ["that fails, with a lock", true, { lock: "till" }],
  ["that fails, and was counted", true, { maxAttempts: 3 }],
])(
  "the end of a run %s waits for its quorum, then no longer than the others usually take",
  async (_, fails, options) => {
    const world = virtualWorld();
    const { lock, maxAttempts } = options;
    const client = runner(world, { timeout: 1_000, maxAttempts });
    const { call, end } = await running(client, { lock });
    client.links[2]!.fate = () => delays(world.runtime).late(900);
    if (fails) end.open(Promise.reject(new Error("no")));
    else end.open("done");
    // The count is taken back before that, and is waited for in the same way.
    await world.runtime.advance((maxAttempts ? 75 : 50) - 1);
    expect(call.settled).toBe(false);
    await world.runtime.advance(1);
    expect(fails ? call.error : call.value).toMatchObject(fails ? { message: "no" } : { status: "executed" });
    // What was sent goes on.
    await world.runtime.advance(2_000);
    expect(records(world)).toEqual(Array(3).fill(fails ? null : 'C1 "done"'));
  },
);
