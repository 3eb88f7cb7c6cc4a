import { describe, expect, test } from "vitest";
import type { LockHeldError } from "../../../src/index.ts";
import { forceRelease } from "../../../src/inspect/index.ts";
import { delays, type VirtualWorld, virtualWorld, watch } from "../../support/virtual-client.ts";
import { never, records, runner, running } from "../../support/virtual-runs.ts";

// Runs with locks in virtual time: key and locks are claimed in one request, all or none, and end in one. The timeout of
// a request is 100 ms.

const free = [null, null, null];

/** The commands that the endpoints have executed, those of scripts included. */
const billed = ({ endpoints }: VirtualWorld) =>
  endpoints.map(({ log }) => log.reduce((sum, { billed }) => sum + billed, 0));

describe("a run with a lock", () => {
  test.each(["redis", "upstash"] as const)("takes two requests, 10 commands: %s", async (dialect) => {
    const world = virtualWorld({ dialect });
    const client = runner(world);
    const { call, end } = await running(client, { lock: "a" });
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
    const client = runner(world, { lease: 1_000 });
    const { call, end, context } = await running(client, { lock: "a", note: "evt_1\n🐘" });
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
  });
});

test("a claim that is executed after its run has failed holds key and lock for nobody", async () => {
  const world = virtualWorld();
  const client = runner(world);
  let requests = 0;
  client.links[2]!.fate = () => (requests++ === 0 ? delays(world.runtime).late(150) : "delivered");
  const { call, end } = await running(client, { lock: "a" });
  end.open(Promise.reject(new Error("no")));
  await world.runtime.advance(200);
  expect(call.error).toEqual(new Error("no"));
  expect([records(world), world.values("a")]).toEqual([free, free]);
});

test("each half of a run with a lock stands alone: without its lock it stores its result, and leaves the other's lock", async () => {
  const world = virtualWorld();
  const client = runner(world, { lease: 1_000 });
  const { call, end, context } = await running(client, { lock: "a" });
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
