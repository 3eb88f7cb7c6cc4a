import { describe, expect, test } from "vitest";
import { memoryEndpoint } from "../../../local/src/memory/index.ts";
import { handoff, Redlock, type Runtime, resume } from "../../../src/index.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { once } from "../../../src/sync/index.ts";
import { rejection } from "../../support/outcomes.ts";
import { steppingRuntime } from "../../support/stepping-runtime.ts";
import { virtualWorld, watch } from "../../support/virtual-client.ts";

// Fences of clients whose clocks are wrong, while endpoints fail and forget, in virtual time.

const hour = 3_600_000;

function expectIncrease(fences: readonly number[], what = ""): void {
  for (const [index, fence] of fences.entries()) {
    if (index > 0) expect(fence, `${what} ${fences.join(" ")}`).toBeGreaterThan(fences[index - 1]!);
  }
}

/** A world, and clients whose wall clocks are wrong by so many ms. */
function worldOf(offsets: readonly number[]) {
  const world = virtualWorld();
  const clients = offsets.map((offset) => {
    const { links } = world.client();
    const runtime = { ...world.runtime, now: () => world.runtime.now() + offset };
    const options = { fencing: true, timeout: 100, wait: 0, endpoints: links, runtime } as const;
    return { links, redlock: new Redlock(options) };
  });
  const remove = (indices: readonly number[]) => {
    for (const index of indices) world.endpoints[index]!.engine.execute(["DEL", "redlock:lock:{r}"]);
  };
  /** The result of a call, once it has one. */
  const settled = async <Value>(call: Promise<Value>) => {
    const watched = watch(call);
    await world.runtime.advance(1_000);
    return watched;
  };
  return { ...world, clients, remove, settled };
}

describe("fences increase", () => {
  test("with clocks off by an hour, and one endpoint down in turn", async () => {
    const { runtime, clients, remove } = worldOf([0, hour, -hour]);
    const fences: number[] = [];
    for (let step = 0; step < 18; step += 1) {
      const { redlock, links } = clients[Math.floor(step / 3) % 3]!;
      links[step % 3]!.fate = () => "refused";
      const lock = await redlock.acquire("r");
      fences.push(lock.fence!);
      await lock.release();
      links[step % 3]!.fate = () => "delivered";
      // The endpoint that was down may still store an earlier lock, which is not the subject of this test.
      remove([0, 1, 2]);
    }
    expectIncrease(fences);
    expect(Math.max(...fences)).toBeGreaterThanOrEqual(runtime.now() + hour);
  });

  test("when one endpoint after the other loses its memory", async () => {
    const { endpoints, clients } = worldOf([0]);
    const fences: number[] = [];
    for (const { engine } of [...endpoints, ...endpoints]) {
      engine.execute(["FLUSHALL"]);
      engine.execute(["SCRIPT", "FLUSH"]);
      const lock = await clients[0]!.redlock.acquire("r");
      fences.push(lock.fence!);
      await lock.release();
    }
    expectIncrease(fences);
  });

  test("with every resource of those that share one", async () => {
    const { endpoints, client, runtime } = virtualWorld();
    for (const { engine } of endpoints) {
      engine.execute(["SET", keyOf("redlock", "fence", "b"), runtime.now() + hour, "PX", hour]);
    }
    const { redlock } = client({ fencing: true });
    const fences: number[] = [];
    for (const resources of [["b"], ["a", "b", "c"], ["a"], ["b"], ["a", "c"], ["c"]]) {
      const lock = await redlock.acquire(resources);
      if (resources.length > 1 || resources[0] === "b") fences.push(lock.fence!);
      else expect(lock.fence).toBeGreaterThan(fences[1]!);
      await lock.release();
    }
    expectIncrease(fences.slice(0, 3));
  });
});

test("a fence stays the same through extension, verification and handoff, and grows with each refresh", async () => {
  const { redlock } = virtualWorld().client({ fencing: true });
  const lock = await redlock.acquire("r");
  const { fence } = lock;
  await lock.extend();
  await lock.verify();
  expect(lock.fence).toBe(fence);
  const json = JSON.parse(JSON.stringify(await handoff(lock)));
  expect((await resume(redlock, json)).fence).toBe(fence);
  const refreshed = await redlock.acquire("s", { token: "me" });
  const again = await redlock.acquire("s", { token: "me" });
  expect(again.fence).toBeGreaterThan(refreshed.fence!);
});

describe("fence counters", () => {
  const day = 24 * hour;

  /** Three endpoints and a client for each clock, in virtual time. */
  function world(options: { fenceRetention?: number } = {}) {
    const runtime = steppingRuntime();
    const endpoints = ["a", "b", "c"].map((name) => memoryEndpoint({ name, runtime, dialect: "redis" }));
    const client = (ahead: number) => {
      const own: Runtime = { ...runtime, now: () => runtime.now() + ahead };
      return new Redlock({ endpoints, runtime: own, fencing: true, ...options });
    };
    /** Lets time pass in steps of an hour, so that timers fire on time. */
    const pass = async (ms: number) => {
      for (let rest = ms; rest > 0; rest -= hour) await runtime.advance(Math.min(rest, hour));
    };
    async function settle<Value>(call: Promise<Value>): Promise<Value> {
      let isOver = false;
      const over = () => {
        isOver = true;
      };
      call.then(over, over);
      while (!isOver) await runtime.advance(1);
      return call;
    }
    return { runtime, client, pass, settle, endpoints };
  }

  test("remember a fence of a clock that is ahead until that time has passed", async () => {
    const { client, pass, settle } = world();
    const ahead = await settle(client(5 * day).acquire("r"));
    await settle(ahead.release());
    await pass(4 * day);
    const later = await settle(client(0).acquire("r"));
    expect(later.fence).toBeGreaterThan(ahead.fence!);
    await settle(later.release());
    await pass(60 * hour);
    expect((await settle(client(-day / 2).acquire("r"))).fence).toBeGreaterThan(later.fence!);
  });

  test("outlive a lock that is held for longer than the retention, also for a clock that is behind", async () => {
    const { client, pass, settle } = world({ fenceRetention: 60_000 });
    const lock = await settle(client(0).acquire("r"));
    for (let minute = 0; minute < 30; minute += 1) {
      for (let extension = 0; extension < 10; extension += 1) {
        await settle(lock.extend());
        await pass(6_000);
      }
    }
    await settle(lock.release());
    await pass(50_000);
    expect((await settle(client(-10 * hour).acquire("r"))).fence).toBeGreaterThan(lock.fence!);
  });

  test("outlive a lock that another process extends after a handoff", async () => {
    const { client, pass, settle } = world({ fenceRetention: 60_000 });
    const given = await settle(client(0).acquire("r"));
    await pass(8_000);
    const lock = await settle(resume(client(0), await settle(handoff(given)), { ttl: 10_000 }));
    await settle(lock.extend(60_000));
    await pass(50_000);
    await settle(lock.extend(60_000));
    await pass(55_000);
    await settle(lock.release());
    await pass(50_000);
    expect((await settle(client(-10 * hour).acquire("r"))).fence).toBeGreaterThan(lock.fence!);
  });

  test("outlive the runs of once()", async () => {
    const { client, pass, settle } = world();
    const run = (redlock: Redlock) => settle(once(redlock, "nightly", { every: hour }, ({ fence }) => fence));
    const ahead = (await run(client(5 * day))) as { value: number };
    await pass(4 * day);
    expect(((await run(client(0))) as { value: number }).value).toBeGreaterThan(ahead.value);
  });

  test("expire in the end", async () => {
    const { client, pass, settle, endpoints } = world({ fenceRetention: 60_000 });
    await settle((await settle(client(10 * hour).acquire("r"))).release());
    await pass(9 * hour);
    expect(endpoints[0]!.engine.execute(["KEYS", "redlock:fence:*"])).toHaveLength(1);
    await pass(2 * hour);
    expect(endpoints[0]!.engine.execute(["KEYS", "*"])).toEqual([]);
  });

  test("reject a clock that would use them up", async () => {
    const { client, runtime } = world();
    const redlock = client(2 ** 52 - runtime.now());
    await expect(redlock.acquire("r")).rejects.toThrow(RangeError);
  });

  test("report that they are used up, with a link to the documentation", async () => {
    const { client, settle, endpoints } = world();
    for (const { engine } of endpoints) {
      engine.execute(["SET", keyOf("redlock", "fence", "r"), String(2 ** 53 - 1), "PX", day]);
    }
    const error = await rejection(settle(client(0).tryAcquire("r")));
    expect(String(error)).toMatch(/docs\/fencing\.md/);
  });
});
