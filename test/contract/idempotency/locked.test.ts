import { describe, expect, test } from "vitest";
import {
  InProgressError,
  type LockedRunContext,
  type LockedRunOptions,
  type Outcome,
} from "../../../src/idempotency/index.ts";
import { LockHeldError } from "../../../src/index.ts";
import { forceRelease } from "../../../src/inspect/index.ts";
import { gate } from "../../support/link.ts";
import { type VirtualWorld, virtualWorld, watch } from "../../support/virtual-client.ts";
import { type Runner, records, runner, ttls } from "../../support/virtual-runs.ts";

// Runs with locks in virtual time: key and locks are claimed in one request, all or none, and end in one. The timeout of
// a request is 100 ms.

const never = () => expect.unreachable("nothing may run");
const free = [null, null, null];

/** A run with a lock on `a`, whose handler has begun and ends with what the gate is opened with. */
async function running(client: Runner, options: Partial<LockedRunOptions<unknown>> = {}, key = "key") {
  const end = gate<unknown>();
  let context: LockedRunContext | undefined;
  const sent = client.sent();
  const call = watch<Outcome<unknown>>(
    client.idempotency.run<unknown>(key, { lock: "a", ...options }, (given) => {
      context = given;
      return end.passed;
    }),
  );
  await client.started(sent);
  return { call, end, context: () => context! };
}

/** The commands that the endpoints have executed, those of scripts included. */
const billed = ({ endpoints }: VirtualWorld) =>
  endpoints.map(({ log }) => log.reduce((sum, { billed }) => sum + billed, 0));

describe("a run with a lock", () => {
  test.each(["redis", "upstash"] as const)("takes two requests, 10 commands: %s", async (dialect) => {
    const world = virtualWorld({ dialect });
    const client = runner(world);
    const { call, end } = await running(client);
    expect(client.sent()).toBe(3);
    end.open("done");
    await world.runtime.advance(0);
    expect(call.value).toEqual({ status: "executed", value: "done" });
    expect(client.sent()).toBe(6);
    expect(client.events.at(-1)).toMatchObject({ type: "executed" });
    expect(billed(world)).toEqual([10, 10, 10]);
    expect([records(world), world.values("a")]).toEqual([new Array(3).fill('C1 "done"'), free]);
    // A duplicate reads the record, even while another holds the lock.
    world.put("a", [0, 1, 2]);
    const again = watch(client.idempotency.run("key", { lock: "a" }, never));
    await client.started(6);
    await world.runtime.advance(0);
    expect(again.value).toEqual({ status: "replayed", value: "done" });
    expect(client.sent()).toBe(9);
    expect(billed(world)).toEqual([12, 12, 12]);
  });

  test("stands with its note, and who is refused learns it, by either", async () => {
    const world = virtualWorld();
    const client = runner(world);
    const { call, end, context } = await running(client, { note: "evt_1\n🐘", lease: 1_000 });
    expect(world.values("a")).toEqual(new Array(3).fill(`${context().token} evt_1\n🐘`));
    const other = runner(world);
    const refused = [
      watch(world.client().redlock.acquire("a", { wait: 0, fencing: true })),
      watch(other.idempotency.run("other", { lock: ["b", "a"] }, never)),
    ];
    await other.started();
    await world.runtime.advance(600);
    for (const { error } of refused) {
      const { holder, retryAfter } = error as LockHeldError;
      expect(holder).toEqual({ note: "evt_1\n🐘", expiresIn: retryAfter });
      expect(retryAfter).toBeGreaterThan(0);
      expect((error as Error).message).not.toContain("evt_1");
    }
    // The lease was renewed.
    expect(world.values("a")).toEqual(new Array(3).fill(`${context().token} evt_1\n🐘`));
    end.open(1);
    await world.runtime.advance(0);
    expect(call.value).toEqual({ status: "executed", value: 1 });
    expect(world.values("a")).toEqual(free);
    // Another run of the key is in the way, and no lock.
    const { call: again, end: done } = await running(client, { note: "first" }, "same");
    const duplicate = runner(world);
    const busy = watch(duplicate.idempotency.run("same", { lock: "a" }, never));
    await duplicate.started();
    await world.runtime.advance(0);
    expect(busy.error).toBeInstanceOf(InProgressError);
    expect(busy.error).not.toHaveProperty("holder");
    done.open(1);
    await world.runtime.advance(0);
    expect(again.value).toMatchObject({ status: "executed" });
  });

  test("renews key and lock together, for maxHold at most", async () => {
    const world = virtualWorld();
    const { context } = await running(runner(world, { lease: 1_000, maxHold: 2_500 }));
    await world.runtime.advance(2_400);
    expect(context().signal.aborted).toBe(false);
    expect(ttls(world)).toEqual([100, 100, 100]);
    expect(world.expiries("a")).toEqual([100, 100, 100]);
    await world.runtime.advance(200);
    expect(context().signal.aborted).toBe(true);
    expect([records(world), world.values("a")]).toEqual([free, free]);
  });
});

describe("each half of a run with a lock", () => {
  test("stands alone: without its lock it stores its result, and leaves the other's lock", async () => {
    const world = virtualWorld();
    const client = runner(world, { lease: 1_000 });
    const { call, end, context } = await running(client);
    const { redlock } = world.client();
    expect(await forceRelease(redlock, "a")).toBe(true);
    const other = await redlock.acquire("a", { ttl: 60_000 });
    await world.runtime.advance(600);
    expect(context().signal.aborted).toBe(true);
    end.open("done");
    await world.runtime.advance(0);
    expect(call.value).toEqual({ status: "executed", value: "done" });
    expect(records(world)).toEqual(new Array(3).fill('C1 "done"'));
    expect(await other.verify()).toBe(true);
  });
});

describe("waiting for the lock", () => {
  test("does not hold the key", async () => {
    const world = virtualWorld();
    world.put("a", [0, 1, 2], "somebody", 1_000);
    const client = runner(world, { wait: 5_000 });
    const call = watch(client.idempotency.run("key", { lock: "a" }, ({ fence }) => fence));
    await client.started();
    await world.runtime.advance(500);
    expect(records(world)).toEqual([undefined, undefined, undefined].map(() => null));
    await world.runtime.advance(600);
    expect(call.value).toMatchObject({ status: "executed" });
  });
});

describe("requests of a run with a lock", () => {
  test("an extension and an end that are executed after the end change nothing", async () => {
    const world = virtualWorld();
    const client = runner(world, { lease: 1_000 });
    const { end } = await running(client);
    await world.runtime.advance(600);
    end.open(1);
    await world.runtime.advance(0);
    const commands = client.links.map(({ sent }) => sent.slice(-2));
    const other = await world.client().redlock.acquire("a", { ttl: 60_000 });
    world.endpoints.forEach(({ engine }, index) => {
      for (const command of commands[index]!) engine.execute(command);
    });
    expect(await other.verify()).toBe(true);
    expect(records(world)).toEqual(["C1 1", "C1 1", "C1 1"]);
    expect(ttls(world)[0]).toBeGreaterThan(50_000);
  });
});

describe("the option lock", () => {
  test("takes several resources, all or none", async () => {
    const world = virtualWorld();
    world.put("b", [0, 1, 2]);
    const client = runner(world);
    const refused = watch(client.idempotency.run("key", { lock: ["a", "b"] }, never));
    await client.started();
    await world.runtime.advance(0);
    expect(refused.error).toBeInstanceOf(LockHeldError);
    expect(world.values("a")).toEqual(free);
    const { end } = await running(client, { lock: ["a", "c", "a"] });
    expect(world.values("a").concat(world.values("c"))).not.toContain(null);
    end.open(1);
    await world.runtime.advance(0);
    expect(world.values("a").concat(world.values("c"))).toEqual([...free, ...free]);
  });
});
