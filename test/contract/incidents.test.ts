import { describe, expect, test } from "vitest";
import { LockLostError, Redlock } from "../../src/index.ts";
import { Mailbox, type MailboxHandler } from "../../src/sync/index.ts";
import { forbidUnhandledRejections } from "../support/unhandled.ts";
import { oneClient, virtualWorld, watch } from "../support/virtual-client.ts";
import { newWorld } from "../support/virtual-sync.ts";

// What public reports tell, and no other test shows, in virtual time: docs/incidents.md has the reports.

/** Everything that is stored on each endpoint, with ttls in ms; −1: it never expires. */
function expiriesOf({ endpoints }: ReturnType<typeof virtualWorld>): number[] {
  return endpoints.flatMap(({ engine }) => {
    const names = engine.execute(["KEYS", "*"]) as string[];
    return names.map((name) => engine.execute(["PTTL", name]) as number);
  });
}

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
});

test("an automatic extension that has failed for good does not keep the next lock of that name from being extended", async () => {
  const { runtime, endpoints, redlock } = oneClient({ ttl: 1_000, autoExtend: true });
  const first = await redlock.acquire("r");
  for (const { engine } of endpoints) engine.execute(["FLUSHALL"]);
  await runtime.advance(1_000);
  expect(first.signal.aborted).toBe(true);
  const second = await redlock.acquire("r");
  await runtime.advance(10_000);
  expect([second.signal.aborted, await second.verify()]).toEqual([false, true]);
});

describe("endpoints", () => {
  test("of which one has forgotten everything give nobody a second lock", async () => {
    const { runtime, endpoints, client } = virtualWorld();
    const lock = await client({ ttl: 10_000 }).redlock.acquire("r");
    endpoints[1]!.engine.execute(["FLUSHALL"]);
    expect(await client().redlock.tryAcquire("r")).toBe(null);
    await runtime.advance(5_000);
    expect(await lock.verify()).toBe(true);
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

test("a conversation's second message waits for a handler that takes forty times the ttl", async () => {
  const { runtime, client } = newWorld();
  let running = 0;
  const handled: string[] = [];
  const slowly: MailboxHandler<string> = async (messages) => {
    for await (const { value } of messages) {
      running += 1;
      expect(running).toBe(1);
      await runtime.sleep(40_000);
      running -= 1;
      handled.push(value);
    }
  };
  const post = (value: string) =>
    new Mailbox<string>(client().redlock, "m", { ttl: 1_000 }).post({ id: value, value }, slowly);
  const first = watch(post("first"));
  await runtime.advance(35_000);
  const second = watch(post("second"));
  await runtime.advance(60_000);
  expect([first.value?.status, second.value?.status]).toEqual(["handled", "queued"]);
  expect(handled).toEqual(["first", "second"]);
});
