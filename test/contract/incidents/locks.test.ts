import { describe, expect, test } from "vitest";
import { EndpointError, LockLostError, QuorumError, Redlock } from "../../../src/index.ts";
import { rejection } from "../../support/outcomes.ts";
import { forbidUnhandledRejections } from "../../support/unhandled.ts";
import { oneClient, takes, virtualWorld, watch } from "../../support/virtual-client.ts";

// What public reports tell of locks, in virtual time: docs/incidents.md has the reports.

/** Everything that is stored on each endpoint, with ttls in ms; −1: it never expires. */
function expiriesOf({ endpoints }: ReturnType<typeof virtualWorld>): number[] {
  return endpoints.flatMap(({ engine }) => {
    const names = engine.execute(["KEYS", "*"]) as string[];
    return names.map((name) => engine.execute(["PTTL", name]) as number);
  });
}

describe("a lock that expires while its holder works", () => {
  test("the late write of a frozen holder is refused, because a later fence has written", async () => {
    const { runtime, client } = virtualWorld();
    const row = { value: "", fence: 0 };
    const write = (value: string, fence: number) => {
      if (fence < row.fence) return false;
      Object.assign(row, { value, fence });
      return true;
    };
    const frozen = await client().redlock.acquire("r", { ttl: 1_000, fencing: true });
    await runtime.advance(1_000);
    const next = await client().redlock.acquire("r", { ttl: 1_000, fencing: true });
    expect(write("by the next holder", next.fence)).toBe(true);
    expect(write("by the frozen holder", frozen.fence)).toBe(false);
    expect(row.value).toBe("by the next holder");
  });

  test("a holder without a network is told before anyone else has the lock", async () => {
    const { runtime, client } = virtualWorld();
    const first = client({ ttl: 1_000, autoExtend: true });
    const second = client({ wait: 60_000, backoff: () => 100 });
    const { signal } = await first.redlock.acquire("r");
    const waiting = watch(second.redlock.acquire("r"));
    await runtime.advance(5_000);
    expect([signal.aborted, waiting.settled]).toEqual([false, false]);
    for (const link of first.links) link.fate = () => "lost";
    while (!signal.aborted) await runtime.advance(1);
    expect(waiting.settled).toBe(false);
    await runtime.advance(1_000);
    expect(waiting.value).toMatchObject({ resources: ["r"] });
  });

  test("work that takes ten times the ttl stays alone, because `using` extends its lock", async () => {
    const { runtime, client } = virtualWorld();
    let running = 0;
    let most = 0;
    const work = async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise<void>((resolve) => void runtime.timer(10_000, resolve));
      running -= 1;
    };
    const options = { ttl: 1_000, wait: 60_000, backoff: () => 250 };
    const calls = [1, 2, 3].map(() => watch(client().redlock.using("r", options, work)));
    await runtime.advance(31_000);
    expect(calls).toEqual(calls.map(() => ({ settled: true, value: undefined })));
    expect(most).toBe(1);
  });
});

describe("a process that wakes up after its lock has expired", () => {
  forbidUnhandledRejections();

  test("learns of the loss from its signal, and nothing crashes", async () => {
    const { runtime, client } = virtualWorld();
    const { redlock, events } = client({ ttl: 1_000, autoExtend: true });
    const lock = await redlock.acquire("r");
    // The machine sleeps for a minute: no timer fires, and the clock goes on.
    runtime.wallOffset += 60_000;
    const next = await client().redlock.acquire("r");
    await runtime.advance(1_000);
    expect(lock.signal.reason).toBeInstanceOf(LockLostError);
    expect(await lock.release()).toBe(false);
    expect(await next.verify()).toBe(true);
    expect(events.map(({ type }) => type)).toContain("lost");
  });

  test("releases at once, without further attempts", async () => {
    const { runtime, redlock } = oneClient({ ttl: 200 });
    const outlived = () => new Promise<void>((resolve) => void runtime.timer(1_000, resolve));
    const call = watch(redlock.using("r", { autoExtend: false }, outlived));
    await takes(runtime, call, 1_000);
    expect(call.error).toBeInstanceOf(LockLostError);
  });
});

test("a release compares and deletes in one command, and leaves a successor's lock alone", async () => {
  const { redlock, links, put, values } = oneClient();
  const lock = await redlock.acquire("r");
  put("r", [0, 1, 2], "a successor's");
  const before = links.map(({ sent }) => sent.length);
  expect(await lock.release()).toBe(false);
  expect(links.map(({ sent }, index) => sent.length - before[index]!)).toEqual([1, 1, 1]);
  expect(values("r")).toEqual(new Array(3).fill("a successor's"));
});

describe("an automatic extension", () => {
  test("that Redis answers with BUSY is sent again, in time", async () => {
    const { runtime, redlock, links } = oneClient({ ttl: 1_000, autoExtend: true });
    const { signal } = await redlock.acquire("r");
    const busy = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
    let refused = 0;
    for (const link of links) {
      link.fate = () => {
        if (refused >= 3) return "delivered";
        refused += 1;
        return {
          before() {
            throw new EndpointError(link.name, "redis", busy);
          },
        };
      };
    }
    await runtime.advance(10_000);
    expect([refused, signal.aborted]).toEqual([3, false]);
  });

  test("that has failed for good does not keep the next lock of that name from being extended", async () => {
    const { runtime, endpoints, redlock } = oneClient({ ttl: 1_000, autoExtend: true });
    const first = await redlock.acquire("r");
    for (const { engine } of endpoints) engine.execute(["FLUSHALL"]);
    await runtime.advance(1_000);
    expect(first.signal.aborted).toBe(true);
    const second = await redlock.acquire("r");
    await runtime.advance(10_000);
    expect([second.signal.aborted, await second.verify()]).toEqual([false, true]);
  });
});

describe("endpoints", () => {
  test.each(["refused", "lost"] as const)(
    "of which one of three is down grant, extend and free every lock: %s",
    async (fate) => {
      const { runtime, links, redlock } = oneClient({ ttl: 10_000 });
      links[0]!.fate = () => fate;
      const held = watch(redlock.using("r", (lock) => lock.extend()));
      await runtime.advance(1_000);
      expect([held.error, held.value]).toEqual([undefined, expect.any(Number)]);
      const again = watch(redlock.tryAcquire("r"));
      await runtime.advance(1_000);
      expect(again.value).toMatchObject({ resources: ["r"] });
    },
  );

  test("of which one has forgotten everything give nobody a second lock", async () => {
    const { runtime, endpoints, client } = virtualWorld();
    const lock = await client({ ttl: 10_000 }).redlock.acquire("r");
    endpoints[1]!.engine.execute(["FLUSHALL"]);
    expect(await client().redlock.tryAcquire("r")).toBe(null);
    await runtime.advance(5_000);
    expect(await lock.verify()).toBe(true);
  });

  test("of which a client reaches the minority give it nothing, and two clients never count differently", async () => {
    const { client, values } = virtualWorld({ count: 5 });
    const [partitioned, whole] = [client({ wait: 0 }), client({ wait: 0 })];
    for (const link of partitioned.links.slice(2)) link.fate = () => "refused";
    expect(await rejection(partitioned.redlock.acquire("r"))).toBeInstanceOf(QuorumError);
    const lock = await whole.redlock.acquire("r");
    expect(await lock.release()).toBe(true);
    expect(values("r")).toEqual(new Array(5).fill(null));
  });

  test("decide when a lock expires: a client whose clock is an hour ahead waits as everyone", async () => {
    const { runtime, endpoints, client } = virtualWorld();
    await client({ ttl: 10_000 }).redlock.acquire("r");
    const ahead = { ...runtime, now: () => runtime.now() + 3_600_000 };
    const replica = new Redlock({ endpoints, runtime: ahead, timeout: 100 });
    expect(await replica.tryAcquire("r")).toBe(null);
    await runtime.advance(10_000);
    expect(await replica.tryAcquire("r")).toMatchObject({ resources: ["r"] });
  });
});

describe("a process that dies", () => {
  test.each([{}, { fencing: true }, { note: "worker 7" }])(
    "leaves no key without a ttl, wherever it stops: %o",
    async (options) => {
      const world = virtualWorld();
      const { redlock, links } = world.client({ ttl: 5_000 });
      // It dies after so many of its requests have arrived.
      for (let arrive = 0; arrive < 8; arrive += 1) {
        let left = arrive;
        for (const link of links) link.fate = () => (left-- > 0 ? "delivered" : "lost");
        const call = watch(redlock.tryAcquire(`r${arrive}`, options));
        await world.runtime.advance(300);
        expect(call.settled).toBe(true);
        for (const ms of expiriesOf(world)) expect(ms).toBeGreaterThan(0);
      }
    },
  );

  test("frees its lock after its ttl, however often others try, and whatever ttl they ask for", async () => {
    const { runtime, client, expiries } = virtualWorld();
    await client({ ttl: 10_000 }).redlock.acquire("r");
    const contender = client({ ttl: 100 }).redlock;
    for (let passed = 1_000; passed <= 9_000; passed += 1_000) {
      await runtime.advance(1_000);
      expect(await contender.tryAcquire("r")).toBe(null);
      expect(expiries("r")).toEqual(new Array(3).fill(10_000 - passed));
    }
    await runtime.advance(1_000);
    expect(await contender.tryAcquire("r")).toMatchObject({ resources: ["r"] });
  });
});

test("data under the name of a resource is no lock of it, and stays as it is", async () => {
  const { endpoints, redlock } = oneClient();
  for (const { engine } of endpoints) engine.execute(["SET", "project:42", "the data"]);
  const lock = await redlock.acquire("project:42");
  for (const { engine } of endpoints) engine.execute(["SET", "project:42", "new data"]);
  expect(await lock.release()).toBe(true);
  for (const { engine } of endpoints) expect(engine.execute(["GET", "project:42"])).toBe("new data");
});
