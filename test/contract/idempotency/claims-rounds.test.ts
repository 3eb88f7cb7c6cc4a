import { describe, expect, test } from "vitest";
import { QuorumError } from "../../../src/errors.ts";
import { LeaseLostError, type RunContext } from "../../../src/idempotency/index.ts";
import { gate } from "../../support/link.ts";
import { delays, virtualWorld, watch } from "../../support/virtual-client.ts";
import { put, type Runner, records, runner, textsOf, ttls } from "../../support/virtual-runs.ts";

// The claim of a run in virtual time: how long it lasts, what renews it, and what its end means. The timeout of a request
// is 100 ms.

const never = () => expect.unreachable("nothing may run");
const pending = (token: string, startedAt: number) => `P1 ${token} ${startedAt} -`;

describe("a claim", () => {
  /** A run whose handler has begun, and ends with what the gate is opened with. */
  async function running(client: Runner, options: { deadline?: number } = {}) {
    const end = gate<unknown>();
    let context: RunContext | undefined;
    const call = watch(
      client.idempotency.run<unknown>("key", options, (given) => {
        context = given;
        return end.passed;
      }),
    );
    await client.started();
    return { call, end, context: () => context! };
  }

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
    expect(context().remaining()).toBe(500);
    await world.runtime.advance(499);
    expect(context().signal.aborted).toBe(false);
    await world.runtime.advance(2);
    expect(context().signal.reason).toBeInstanceOf(LeaseLostError);
  });

  test("is renewed up to that, where the deadline is later than its lease", async () => {
    const world = virtualWorld();
    const deadline = world.runtime.now() + 1_500;
    const { context, end, call } = await running(runner(world, { lease: 1_000 }), { deadline });
    expect(ttls(world)).toEqual([1_000, 1_000, 1_000]);
    await world.runtime.advance(1_490);
    expect(context().signal.aborted).toBe(false);
    expect(ttls(world)).toEqual([110, 110, 110]);
    await world.runtime.advance(10);
    expect(context().signal.aborted).toBe(true);
    end.open("just in time");
    await world.runtime.advance(0);
    expect(call.value).toEqual({ status: "executed", value: "just in time" });
  });

  test("bounds its own requests: a lease of 50 ms is not waited for longer", async () => {
    const world = virtualWorld();
    const { idempotency, links, started } = runner(world, { lease: 50 });
    for (const each of links) each.fate = () => "lost";
    const call = watch(idempotency.run("key", never));
    await started();
    await world.runtime.advance(150);
    expect(call.error).toBeInstanceOf(QuorumError);
  });

  test("that is granted too late runs nothing, and is freed", async () => {
    const world = virtualWorld();
    const { slow } = delays(world.runtime);
    const { idempotency, links, started } = runner(world, { lease: 60 });
    const isBegin = ({ length }: readonly unknown[]) => length > 5;
    for (const each of links) each.fate = (command) => (isBegin(command) ? slow(59) : "delivered");
    const call = watch(idempotency.run("key", never));
    await started();
    await world.runtime.advance(500);
    expect(call.error).toBeInstanceOf(QuorumError);
    expect((call.error as QuorumError).votes.map(({ outcome }) => outcome)).toEqual([
      "granted",
      "granted",
      "granted",
    ]);
    expect(records(world)).toEqual([null, null, null]);
  });

  test("that another run has taken over is lost when the result is to be stored", async () => {
    const world = virtualWorld();
    const client = runner(world, { lease: 1_000 });
    const { call, end } = await running(client);
    await put(world, new Array(3).fill(pending("tother", world.runtime.now())));
    end.open("mine");
    await world.runtime.advance(0);
    expect(call.error).toBeInstanceOf(LeaseLostError);
    expect(client.events.map(({ type }) => type)).toEqual(["lost"]);
    expect(textsOf(world)).toEqual(new Array(3).fill(expect.stringMatching(/^P1 tother /)));
  });

  test("is renewed up to one timeout after the deadline also where that is maxHold", async () => {
    const world = virtualWorld();
    const deadline = world.runtime.now() + 1_500;
    await running(runner(world, { lease: 1_000, maxHold: 1_500 }), { deadline });
    await world.runtime.advance(1_490);
    expect(ttls(world)).toEqual([110, 110, 110]);
  });

  test("is that of the run whose key and token the handler gets", async () => {
    const world = virtualWorld();
    const { context } = await running(runner(world), {});
    expect(context().key).toBe("key");
    expect(context().token).toMatch(/^t[0-9a-f]{32}$/);
    expect(textsOf(world)).toEqual(new Array(3).fill(`P1 ${context().token} 1700000000000 -`));
  });

  test("ends without a loss when the handler throws", async () => {
    const world = virtualWorld();
    const failure = new Error("declined");
    const { context, end, call } = await running(runner(world, { lease: 1_000 }));
    const { signal } = context();
    end.open(Promise.reject(failure));
    await world.runtime.advance(0);
    expect([call.error, context().remaining(), world.runtime.pending]).toEqual([failure, 0, 0]);
    await world.runtime.advance(5_000);
    expect(signal.aborted).toBe(false);
  });

  test("costs what its renewals do", async () => {
    const world = virtualWorld();
    const client = runner(world, { lease: 1_000 });
    const { end } = await running(client);
    await world.runtime.advance(1_100);
    end.open("done");
    await world.runtime.advance(0);
    // The begin, two renewals, and storing the result.
    expect(client.events).toMatchObject([{ type: "executed", elapsed: 1_100, requests: 12 }]);
  });

  test.each([
    ["whole ms", 250.7, 0, 250],
    ["not before the run began, by a clock that was set back", 250, -5_000, 0],
  ])("is complete at a time of %s", async (_what, ms, offset, expected) => {
    const world = virtualWorld();
    const { end } = await running(runner(world));
    await world.runtime.advance(ms);
    world.runtime.wallOffset = offset;
    end.open("done");
    await world.runtime.advance(0);
    const times = textsOf(world).map((text) => Number(text?.split(" ")[2]) - 1_700_000_000_000);
    expect(times).toEqual([expected, expected, expected]);
  });
});
