import process from "node:process";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { memoryEndpoint } from "../../../local/src/memory/index.ts";
import {
  handoff,
  inspect,
  type Lock,
  QuorumError,
  Redlock,
  type Runtime,
  resume,
  systemRuntime,
} from "../../../src/index.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { once } from "../../../src/sync/index.ts";
import { eachEngine } from "../../support/each-engine.ts";
import { gated } from "../../support/gated.ts";
import { type Local, newResource, openLocal } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import { seededRandom } from "../../support/random.ts";
import { engines } from "../../support/redis-servers.ts";
import { steppingRuntime } from "../../support/stepping-runtime.ts";
import { until } from "../../support/until.ts";

const hour = 3_600_000;

/** A client whose wall clock is wrong by `offset` ms. */
function clock(offset: number): Runtime {
  return { ...systemRuntime, now: () => Date.now() + offset };
}

const cases = [
  [engines[0]!, "redis-8.4"],
  ["embedded", "redis"],
  ["embedded", "upstash"],
] as const;

eachEngine(cases)("fences, on %s in the %s dialect", (engine, dialect) => {
  const at = gated(engine, 3, dialect);
  const counterOf = (resource: string) => keyOf("redlock", "fence", resource);
  const counters = (resource: string) =>
    Promise.all(
      at.local.endpoints.map(async (endpoint) =>
        Number(await endpoint.execute(["GET", counterOf(resource)])),
      ),
    );
  const setCounter = (resource: string, index: number, value: string | number) =>
    at.local.endpoints[index]!.execute(["SET", counterOf(resource), value, "PX", hour]);

  test("strictly increase, survive the release, and cost one round", async () => {
    const resource = newResource();
    const { redlock } = at.client({ fencing: true, fenceRetention: 7 * hour });
    const began = Date.now();
    let before = 0;
    for (let count = 1; count <= 5; count += 1) {
      const lock = await redlock.acquire(resource);
      expect(lock.fence).toBeGreaterThan(before);
      expect(Number.isSafeInteger(lock.fence)).toBe(true);
      before = lock.fence!;
      expect(await lock.release()).toBe(true);
      expect(at.requests()).toBe(6 * count);
    }
    expect((await inspect(redlock, resource)).fence).toBe(before);
    expect(before).toBeGreaterThanOrEqual(began);
    const ttl = (await at.local.endpoints[0]!.execute(["PTTL", counterOf(resource)])) as number;
    // At least the retention after the lock's end, and twice that so that extensions need not prolong it.
    expect(ttl).toBeGreaterThan(13 * hour);
    expect(ttl).toBeLessThanOrEqual(14 * hour + 1_000);
  });

  test("stay the same through extension, verification and handoff, and grow with each acquire", async () => {
    const resource = newResource();
    const { redlock } = at.client({ fencing: true });
    const lock = await redlock.acquire(resource);
    const { fence } = lock;
    await lock.extend();
    await lock.verify();
    expect(lock.fence).toBe(fence);
    await until(async () => (await counters(resource)).every((counter) => counter === fence), "all counters");
    const json = JSON.parse(JSON.stringify(await handoff(lock)));
    expect((await resume(redlock, json)).fence).toBe(fence);
    const refreshed = await redlock.acquire(newResource(), { token: "me" });
    const again = await redlock.acquire(refreshed.resources, { token: "me" });
    expect(again.fence).toBeGreaterThan(refreshed.fence!);
  });

  test("are raised by a second round where the counters differ", async () => {
    const resource = newResource();
    const ahead = Date.now() + 50 * hour;
    await setCounter(resource, 0, ahead);
    // Only the one that is ahead and one other can be reached, so that the difference counts.
    at.gateways[2]!.answer = () => "reset";
    const { redlock, events } = at.client({ fencing: true });
    const lock = await redlock.acquire(resource);
    expect(lock.fence).toBe(ahead + 1);
    expect(at.requests()).toBe(6);
    expect((await counters(resource)).slice(0, 2)).toEqual([ahead + 1, ahead + 1]);
    expect(events.find(({ type }) => type === "acquired")).toMatchObject({ requests: 6, fence: ahead + 1 });
    await lock.release();
    // The next quorum shares with this one only the endpoint that had been behind.
    const { answer } = at.gateways[0]!;
    at.gateways[0]!.answer = () => "reset";
    at.gateways[2]!.answer = answer;
    const next = await new Redlock({
      endpoints: at.local.connect(),
      fencing: true,
      runtime: clock(-hour),
    }).acquire(resource);
    expect(next.fence).toBeGreaterThan(lock.fence!);
  });

  test("a lock that is lost before its fence is raised is not granted", async () => {
    const resource = newResource();
    await setCounter(resource, 0, Date.now() + hour);
    at.gateways[2]!.answer = () => "reset";
    for (const gateway of at.gateways.slice(0, 2)) {
      gateway.before = (command) => (command.includes("extend") ? at.local.remove(resource) : undefined);
    }
    const { redlock } = at.client({ fencing: true });
    expect(await rejection(redlock.acquire(resource, { wait: 0 }))).toBeInstanceOf(QuorumError);
    expect(await at.local.holders(resource)).toBe(0);
  });

  test("a fence that cannot be raised is not returned", async () => {
    const resource = newResource();
    await setCounter(resource, 0, Date.now() + hour);
    at.gateways[2]!.answer = () => "reset";
    at.gateways[1]!.after = (command) => (command.includes("extend") ? "lost" : undefined);
    const { redlock } = at.client({ fencing: true });
    expect(await rejection(redlock.acquire(resource, { wait: 0 }))).toBeInstanceOf(QuorumError);
    expect(await at.local.holders(resource)).toBe(0);
  });

  test("several resources share one fence, above that of each", async () => {
    const [a, b, c] = [newResource("a"), newResource("b"), newResource("c")];
    const { redlock } = at.client({ fencing: true });
    for (const index of [0, 1, 2]) await setCounter(b, index, Date.now() + hour);
    const alone = await redlock.acquire(b);
    await alone.release();
    const together = await redlock.acquire([a, b, c]);
    expect(together.fence).toBeGreaterThan(alone.fence!);
    await together.release();
    for (const resource of [a, b, c]) {
      const next = await redlock.acquire(resource);
      expect(next.fence).toBeGreaterThan(together.fence!);
      await next.release();
    }
  });

  test("without fencing there is no fence and no counter", async () => {
    const resource = newResource();
    const { redlock } = at.client();
    const lock = await redlock.acquire([resource, newResource()]);
    expect(lock.fence).toBeUndefined();
    expect(await counters(resource)).toEqual([0, 0, 0]);
  });

  test("large counters increase by exactly one", async () => {
    const resource = newResource();
    const large = 9_007_199_254_740_000;
    for (const index of [0, 1, 2]) await setCounter(resource, index, large);
    const { redlock } = at.client({ fencing: true });
    for (let count = 1; count <= 3; count += 1) {
      const lock = await redlock.acquire(resource);
      expect(lock.fence).toBe(large + count);
      await lock.release();
    }
  });

  test("a counter at the largest safe integer returns no fence", async () => {
    const resource = newResource();
    for (const index of [0, 1, 2]) await setCounter(resource, index, Number.MAX_SAFE_INTEGER);
    const { redlock } = at.client({ fencing: true });
    const error = (await rejection(redlock.acquire(resource, { wait: 0 }))) as QuorumError;
    expect(error.votes.map(({ cause }) => cause?.kind)).toEqual(["malformed", "malformed", "malformed"]);
    expect(await at.local.holders(resource)).toBe(0);
  });

  test.each([Number.NaN, Infinity, 2 ** 53, -(2 ** 53)])("rejects a clock that returns %d", async (now) => {
    const { redlock } = at.client({ fencing: true, runtime: { ...systemRuntime, now: () => now } });
    expect(await rejection(redlock.acquire(newResource()))).toBeInstanceOf(RangeError);
    expect(at.requests()).toBe(0);
  });
});

eachEngine(engines)("fences with wrong clocks and failing endpoints, on %s", (engine) => {
  let local: Local;
  beforeAll(async () => {
    local = await openLocal({ engine, count: 3 });
  });
  beforeEach(() => local.reset());
  afterAll(() => local.close());

  const clientAt = (offset: number) =>
    local.redlock({ fencing: true, runtime: clock(offset), wait: 20_000, backoff: { min: 1, max: 20 } });

  test("increase with clocks off by an hour, and one endpoint down in turn", async () => {
    const resource = newResource();
    const clients = [0, hour, -hour].map(clientAt);
    const fences: number[] = [];
    for (let step = 0; step < 18; step += 1) {
      const missing = local.endpoints[step % 3]!;
      missing.faults.add({ fault: "down" });
      const lock = await clients[Math.floor(step / 3) % 3]!.acquire(resource);
      fences.push(lock.fence!);
      await lock.release();
      missing.faults.clear();
      // The endpoint that was down may still store an earlier lock, which is not the subject of this test.
      await local.remove(resource);
    }
    expect(increases(fences), fences.join(" ")).toBe(true);
    expect(Math.max(...fences)).toBeGreaterThan(Date.now() + hour / 2);
  });

  test("increase when one endpoint after the other loses its memory", async () => {
    const resource = newResource();
    const fences: number[] = [];
    for (const endpoint of [...local.endpoints, ...local.endpoints]) {
      await endpoint.execute(["FLUSHALL"]);
      await endpoint.execute(["SCRIPT", "FLUSH"]);
      const lock = await clientAt(0).acquire(resource);
      fences.push(lock.fence!);
      await lock.release();
    }
    expect(increases(fences), fences.join(" ")).toBe(true);
  });

  test("increase under random faults, also when the lock itself is removed", async () => {
    const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
    const random = seededRandom(seed);
    const pick = <Value>(values: readonly Value[]) => values[Math.floor(random() * values.length)]!;
    const resource = newResource();
    const clients = [-hour, -1, 0, 1, hour].map((offset) =>
      local.redlock({
        fencing: true,
        runtime: clock(offset),
        timeout: 2_000,
        wait: 0,
        backoff: { min: 1, max: 20 },
      }),
    );
    const fences: number[] = [];
    let failures = 0;
    for (let step = 0; step < 60; step += 1) {
      const trouble = pick(["none", "down", "drop-reply", "status", "duplicate"] as const);
      const endpoint = pick(local.endpoints);
      if (trouble !== "none") {
        endpoint.faults.add({
          fault: trouble,
          times: pick([1, 2]),
          ...(trouble === "drop-reply" && { reset: true }),
        });
      }
      const lock: Lock | undefined | null = await pick(clients)
        .tryAcquire(resource)
        .catch(() => undefined);
      if (lock) fences.push(lock.fence!);
      else failures += 1;
      // Some locks are released, some are removed, and some keys remain until the next step removes them.
      if (lock && random() < 0.5) await lock.release().catch(() => false);
      else await local.remove(resource, random() < 0.5 ? [0, 1] : [0, 1, 2]);
      for (const each of local.endpoints) each.faults.clear();
    }
    expect(fences.length, `seed ${seed}`).toBeGreaterThan(10);
    expect(increases(fences), `seed ${seed}: ${fences.join(" ")}, ${failures} failures`).toBe(true);
  });

  test("clients that acquire concurrently get different fences", async () => {
    const resource = newResource();
    const fences: number[] = [];
    await Promise.all(
      [0, hour, -hour, 5, -5].map((offset) =>
        clientAt(offset).using(resource, (lock) => {
          fences.push(lock.fence!);
        }),
      ),
    );
    expect(fences).toHaveLength(5);
    expect(increases(fences), fences.join(" ")).toBe(true);
  });
});

function increases(fences: readonly number[]): boolean {
  return fences.every((fence, index) => index === 0 || fence > fences[index - 1]!);
}

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
