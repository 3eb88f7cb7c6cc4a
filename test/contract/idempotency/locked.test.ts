import { describe, expect, test } from "vitest";
import {
  InProgressError,
  type LockedRunContext,
  type LockedRunOptions,
  type Outcome,
} from "../../../src/idempotency/index.ts";
import { LockHeldError, QuorumError } from "../../../src/index.ts";
import { forceRelease } from "../../../src/inspect/index.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { gate } from "../../support/link.ts";
import { delays, type VirtualWorld, virtualWorld, watch } from "../../support/virtual-client.ts";
import { type Runner, records, runner, silence, ttls } from "../../support/virtual-runs.ts";

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

const hour = 3_600_000;

/** The counters of `a`, by endpoint. */
function counters({ endpoints }: VirtualWorld): (string | null)[] {
  return endpoints.map(({ engine }) => engine.execute(["GET", keyOf("redlock", "fence", "a")]) as string);
}

/** The number of tombstones, by endpoint. */
function tombstones({ endpoints }: VirtualWorld): number[] {
  return endpoints.map(({ engine }) => (engine.execute(["KEYS", "redlock:void:*"]) as string[]).length);
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

  test("excludes other holders, and its key other runs, until it ends", async () => {
    const world = virtualWorld();
    const client = runner(world, { lease: 1_000 });
    const { call, end } = await running(client);
    const other = runner(world);
    const same = watch(other.idempotency.run("key", { lock: "a" }, never));
    const different = watch(other.idempotency.run("other", { lock: ["b", "a"] }, never));
    const plain = watch(world.client().redlock.acquire("a", { wait: 0 }));
    await other.started();
    await world.runtime.advance(300);
    expect(same.error).toBeInstanceOf(InProgressError);
    expect(different.error).toBeInstanceOf(LockHeldError);
    expect(different.error).toMatchObject({ resources: ["b", "a"], retryAfter: expect.any(Number) });
    expect(plain.error).toBeInstanceOf(LockHeldError);
    // Nothing is left of the refused run.
    expect(world.values("b")).toEqual(free);
    expect(world.endpoints.map(({ engine }) => engine.execute(["KEYS", "redlock:idem:*"]))).toMatchObject(
      new Array(3).fill([expect.any(String)]),
    );
    expect(other.events.map(({ type }) => type).sort()).toEqual(["busy", "locked"]);
    end.open(1);
    await world.runtime.advance(0);
    expect(call.value).toEqual({ status: "executed", value: 1 });
    const later = await world.client().redlock.acquire("a", { wait: 0 });
    expect(later.remaining()).toBeGreaterThan(0);
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

  test.each(["lock", "fence"])("says which keys to look at where one is not a string: %s", async (kind) => {
    const world = virtualWorld();
    const name = keyOf("redlock", kind, "a");
    for (const { engine } of world.endpoints) engine.execute(["HSET", name, "f", "x"]);
    const client = runner(world);
    const call = watch(client.idempotency.run("key", { lock: "a" }, never));
    await client.started();
    await world.runtime.advance(0);
    // The record may be whole: nobody is to look for a damaged one, or to forget it.
    expect(call.error).toBeInstanceOf(QuorumError);
    expect((call.error as QuorumError).message).toContain(name);
    expect((call.error as QuorumError).message).toContain("has foreign data: rename or delete it");
    expect(client.events.map(({ type }) => type)).toEqual(["unavailable"]);
    expect(world.endpoints.map(({ engine }) => engine.execute(["HGET", name, "f"]))).toEqual(["x", "x", "x"]);
  });

  test("draws fences from the counters of locks", async () => {
    const world = virtualWorld();
    const { redlock } = world.client();
    const before = await redlock.acquire("a", { fencing: true });
    await before.release();
    const { end, context } = await running(runner(world));
    const { fence } = context();
    expect(fence).toBeGreaterThan(before.fence);
    end.open(1);
    await world.runtime.advance(0);
    const after = await redlock.acquire("a", { fencing: true });
    expect(after.fence).toBeGreaterThan(fence);
  });

  test("raises the counters where they differ", async () => {
    const world = virtualWorld();
    const ahead = world.runtime.now() + 5_000;
    world.endpoints[1]!.engine.execute(["SET", keyOf("redlock", "fence", "a"), ahead, "PX", 1_000_000]);
    const client = runner(world);
    const { context, end } = await running(client);
    await world.runtime.advance(0);
    expect(context().fence).toBe(ahead + 1);
    expect(counters(world)).toEqual(new Array(3).fill(String(ahead + 1)));
    end.open(1);
    await world.runtime.advance(0);
    expect(client.sent()).toBe(9);
    expect(client.events.at(-1)).toMatchObject({ type: "executed" });
  });

  test("does not run where its fence reaches no quorum, and leaves nothing", async () => {
    const world = virtualWorld();
    world.endpoints[1]!.engine.execute(["SET", keyOf("redlock", "fence", "a"), 2e12, "PX", 1_000_000]);
    const client = runner(world);
    const isExtend = (command: readonly unknown[]) => command.includes("keep");
    for (const each of [0, 2])
      client.links[each]!.fate = (command) => (isExtend(command) ? "lost" : "delivered");
    const call = watch(client.idempotency.run("key", { lock: "a" }, never));
    await client.started();
    await world.runtime.advance(1_000);
    expect(call.error).toBeInstanceOf(QuorumError);
    expect([records(world), world.values("a")]).toEqual([free, free]);
  });

  test("refuses a counter that is not a number, and leaves it as it is", async () => {
    const world = virtualWorld({ count: 1 });
    const counter = keyOf("redlock", "fence", "a");
    world.endpoints[0]!.engine.execute(["SET", counter, "x"]);
    const client = runner(world);
    const call = watch(client.idempotency.run("key", { lock: "a" }, never));
    await client.started();
    await world.runtime.advance(1_000);
    expect((call.error as QuorumError).votes[0]?.cause?.message).toMatch(/fence.* has foreign data/);
    expect([records(world), world.values("a"), counters(world)]).toEqual([[null], [null], ["x"]]);
  });

  test("frees both when its handler fails", async () => {
    const world = virtualWorld();
    const client = runner(world);
    const { call, end } = await running(client);
    end.open(Promise.reject(new Error("no")));
    await world.runtime.advance(0);
    expect(call.error).toEqual(new Error("no"));
    expect([records(world), world.values("a")]).toEqual([free, free]);
    expect(client.sent()).toBe(6);
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

  test.each([23, 30])("keeps the counters for 24 hours after it: after %i hours", async (held) => {
    const world = virtualWorld();
    const client = runner(world, { lease: hour, retention: 24 * hour, maxHold: 100 * hour });
    const { context, end } = await running(client);
    await world.runtime.advance(held * hour);
    expect(counters(world)).toEqual(new Array(3).fill(String(context().fence)));
    end.open(1);
    await world.runtime.advance(24 * hour - 1);
    expect(counters(world)).toEqual(new Array(3).fill(String(context().fence)));
  });

  test("leaves the counters alone as long as they last", async () => {
    const world = virtualWorld();
    const client = runner(world, { lease: hour, retention: 24 * hour, maxHold: 100 * hour });
    await running(client);
    const counter = keyOf("redlock", "fence", "a");
    const touches = () => client.links[0]!.sent.map((command) => command.includes(counter));
    await world.runtime.advance(23 * hour);
    const [begin, ...extensions] = touches();
    expect(begin).toBe(true);
    expect(extensions.length).toBeGreaterThan(20);
    expect(extensions).not.toContain(true);
    // The first lease that may outlive them begins now, and renews them, as the later ones do.
    await world.runtime.advance(2 * hour);
    const renewals = touches().slice(1 + extensions.length);
    expect(renewals.length).toBeGreaterThan(2);
    expect(renewals).not.toContain(false);
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

  test("stands alone: without its record it frees the lock, and stores its result where nobody has begun", async () => {
    const world = virtualWorld();
    const { call, end } = await running(runner(world));
    for (const { engine } of world.endpoints) {
      engine.execute(["DEL", ...(engine.execute(["KEYS", "redlock:idem:*"]) as string[])]);
    }
    end.open("done");
    await world.runtime.advance(0);
    expect(call.value).toEqual({ status: "executed", value: "done" });
    expect([records(world), world.values("a")]).toEqual([new Array(3).fill('C1 "done"'), free]);
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

  test("ends with the time, and with the signal", async () => {
    const world = virtualWorld();
    world.put("a", [0, 1, 2]);
    const client = runner(world, { wait: 500 });
    const controller = new AbortController();
    const timed = watch(client.idempotency.run("key", { lock: "a" }, never));
    const aborted = watch(client.idempotency.run("k2", { lock: "a", signal: controller.signal }, never));
    await client.started();
    await world.runtime.advance(300);
    controller.abort(new Error("enough"));
    await world.runtime.advance(400);
    expect(timed.error).toMatchObject({ code: "LOCK_HELD" });
    expect((timed.error as LockHeldError).retryAfter).toBeGreaterThan(50_000);
    expect(aborted.error).toEqual(new Error("enough"));
    expect(records(world)).toEqual(free);
  });

  test("ends with the signal also while one endpoint does not answer", async () => {
    const world = virtualWorld();
    world.put("a", [0, 1]);
    const client = runner(world, { wait: 5_000 });
    client.links[2]!.fate = () => "lost";
    const controller = new AbortController();
    const call = watch(client.idempotency.run("key", { lock: "a", signal: controller.signal }, never));
    await client.started();
    await world.runtime.advance(10);
    controller.abort(new Error("enough"));
    await world.runtime.advance(0);
    expect(call.error).toEqual(new Error("enough"));
  });

  test("is not an outage, and an outage is not a lock", async () => {
    const world = virtualWorld();
    world.put("a", [0]);
    const client = runner(world);
    silence(client.links.slice(1));
    const call = watch(client.idempotency.run("key", { lock: "a" }, never));
    await client.started();
    await world.runtime.advance(1_000);
    expect(call.error).toBeInstanceOf(QuorumError);
    expect((call.error as QuorumError).votes.map(({ outcome }) => outcome)).toEqual([
      "held",
      "error",
      "error",
    ]);
  });
});

describe("requests of a run with a lock", () => {
  test.each(["claim", "end"])("may be executed twice: %s", async (operation) => {
    const world = virtualWorld();
    const client = runner(world);
    for (const each of client.links)
      each.fate = (command) => (command.includes(operation) ? "twice" : "delivered");
    const { call, end } = await running(client);
    end.open(1);
    await world.runtime.advance(0);
    expect(call.value).toEqual({ status: "executed", value: 1 });
    expect([records(world), world.values("a")]).toEqual([["C1 1", "C1 1", "C1 1"], free]);
  });

  test("a begin that is repeated while its run lives deletes nothing of it", async () => {
    const world = virtualWorld();
    const client = runner(world, { lease: 1_000 });
    const { end } = await running(client);
    const begins = client.links.map(({ sent }) => sent[0]!);
    const { redlock } = world.client();
    await forceRelease(redlock, "a");
    const other = await redlock.acquire("a", { ttl: 60_000 });
    for (const [index, { engine }] of world.endpoints.entries()) engine.execute(begins[index]!);
    expect(records(world)).toEqual(["P1", "P1", "P1"]);
    expect(await other.verify()).toBe(true);
    end.open(1);
    await world.runtime.advance(0);
    expect(records(world)).toEqual(["C1 1", "C1 1", "C1 1"]);
  });

  test.each<[how: string, handler: () => unknown]>([
    ["completed", () => 1],
    ["failed", () => Promise.reject(new Error("no"))],
  ])(
    "a begin that is executed when its run has %s finds its tombstone, left there only",
    async (_, handler) => {
      const world = virtualWorld();
      const client = runner(world, { waitUntil: () => undefined });
      const [, , third] = client.links;
      third!.fate = () => (third!.sent.length === 1 ? delays(world.runtime).late(50_000) : "delivered");
      const call = watch(client.idempotency.run("key", { lock: "a" }, handler));
      await client.started();
      await world.runtime.advance(200);
      expect(call.settled).toBe(true);
      expect(tombstones(world)).toEqual([0, 0, 1]);
      await world.runtime.advance(50_000);
      expect(world.values("a")).toEqual(free);
    },
  );

  test("an end frees what a begin has taken whose answer is late", async () => {
    const world = virtualWorld();
    const client = runner(world, { waitUntil: () => undefined });
    client.links[2]!.fate = () => delays(world.runtime).slow(20);
    const call = watch(client.idempotency.run("key", { lock: "a" }, () => 1));
    await client.started();
    await world.runtime.advance(1_000);
    expect(call.value).toEqual({ status: "executed", value: 1 });
    expect([records(world), world.values("a")]).toEqual([["C1 1", "C1 1", "C1 1"], free]);
    expect(client.links[2]!.sent).toHaveLength(2);
  });

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
