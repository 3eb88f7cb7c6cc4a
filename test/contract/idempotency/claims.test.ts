import { describe, expect, test } from "vitest";
import { LeaseLostError } from "../../../src/idempotency/index.ts";
import { virtualWorld } from "../../support/virtual-client.ts";
import { put, records, runner, running, textsOf, ttls } from "../../support/virtual-runs.ts";

// The claim of a run in virtual time: how long it lasts, what renews it, and what its end means. The timeout of a request
// is 100 ms.

const pending = (token: string, startedAt: number) => `P1 ${token} ${startedAt} -`;

describe("a claim", () => {
  test("lasts for the lease, and is renewed while the handler runs", async () => {
    const world = virtualWorld();
    const { context, end, call } = await running(runner(world, { lease: 1_000 }));
    expect(ttls(world)).toEqual([1_000, 1_000, 1_000]);
    // The lease less the drift.
    expect(context().remaining()).toBe(988);
    await world.runtime.advance(5_000);
    expect(context().signal.aborted).toBe(false);
    expect(context().remaining()).toBeGreaterThan(400);
    end.open("done");
    await world.runtime.advance(0);
    expect(call.value).toEqual({ status: "executed", value: "done" });
    expect(context().remaining()).toBe(0);
    expect(world.runtime.pending).toBe(0);
  });

  test("is not renewed beyond maxHold; then the handler's signal aborts", async () => {
    const world = virtualWorld();
    const { context, end, call } = await running(runner(world, { lease: 1_000, maxHold: 2_500 }));
    await world.runtime.advance(2_400);
    expect(context().signal.aborted).toBe(false);
    // Not longer, as with a deadline: the process lives on, and completes later runs itself.
    expect(ttls(world)).toEqual([100, 100, 100]);
    await world.runtime.advance(200);
    expect(context().signal.reason).toBeInstanceOf(LeaseLostError);
    await world.runtime.advance(1_000);
    expect(records(world)).toEqual([null, null, null]);
    // Nobody has taken over.
    end.open("late");
    await world.runtime.advance(0);
    expect(call.value).toEqual({ status: "executed", value: "late" });
    expect(records(world)).toEqual(new Array(3).fill('C1 "late"'));
  });

  test("ends one timeout after the deadline, the handler's signal at the deadline", async () => {
    const world = virtualWorld();
    const deadline = world.runtime.now() + 500;
    const { context } = await running(runner(world, { lease: 30_000 }), { deadline });
    expect(ttls(world)).toEqual([600, 600, 600]);
    expect(context().remaining()).toBe(0.99 * 500 - 2);
    await world.runtime.advance(490);
    expect(context().signal.aborted).toBe(false);
    await world.runtime.advance(10);
    expect(context().signal.reason).toBeInstanceOf(LeaseLostError);
  });

  test("that another's record has replaced aborts the signal at the next renewal, the last", async () => {
    const world = virtualWorld();
    const client = runner(world, { lease: 1_000 });
    const { context, call, end } = await running(client);
    await put(world, new Array(3).fill(pending("tother", world.runtime.now())));
    const { signal } = context();
    await world.runtime.advance(600);
    expect(String(signal.reason)).toMatch(/LeaseLostError: .*no quorum has its token/);
    const before = client.sent();
    await world.runtime.advance(5_000);
    expect(client.sent()).toBe(before);
    end.open("too late");
    await world.runtime.advance(0);
    expect(call.error).toBeInstanceOf(LeaseLostError);
    expect(client.events.map(({ type }) => type)).toEqual(["lost"]);
    expect(textsOf(world)).toEqual(new Array(3).fill(expect.stringMatching(/^P1 tother /)));
  });
});

describe("a run whose claim another has taken over", () => {
  /** The other one has begun, at all endpoints but these. */
  async function takenOver(unseen: readonly number[] = []) {
    const world = virtualWorld();
    const late = await running(runner(world, { lease: 1_000, maxHold: 1_000 }));
    await world.runtime.advance(1_500);
    expect([records(world), late.context().signal.aborted]).toEqual([[null, null, null], true]);
    const winner = runner(world);
    for (const index of unseen) winner.links[index]!.fate = () => "refused";
    return { world, late, winner, other: await running(winner) };
  }

  test.each(["runs", "has completed"])("changes nothing any more while the other %s", async (state) => {
    for (const failure of [undefined, new Error("failed in the end")]) {
      const { world, late, other } = await takenOver();
      if (state === "has completed") {
        other.end.open("the other's");
        await world.runtime.advance(0);
      }
      const before = textsOf(world);
      late.end.open(failure ? Promise.reject(failure) : "too late");
      await world.runtime.advance(0);
      if (failure) expect(late.call.error).toBe(failure);
      else expect(late.call.error).toMatchObject({ code: "LEASE_LOST", key: "key" });
      expect(textsOf(world)).toEqual(before);
      other.end.open("the other's");
      await world.runtime.advance(0);
      expect(other.call.value).toEqual({ status: "executed", value: "the other's" });
    }
  });
});
