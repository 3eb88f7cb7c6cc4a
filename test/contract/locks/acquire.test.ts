import { describe, expect, test } from "vitest";
import { memoryEndpoint } from "../../../local/src/memory/index.ts";
import { type Endpoint, LockHeldError, QuorumError, Redlock } from "../../../src/index.ts";
import { rejection } from "../../support/outcomes.ts";
import { oneClient, takes, virtualWorld, watch } from "../../support/virtual-client.ts";

// The rounds of an acquire in virtual time: which one is the last, what the call waits for, and what limits the lock.

test("the deadline of an acquire cuts the ttl, counted from the call, however long the acquire has waited", async () => {
  const { runtime, put, client } = virtualWorld();
  put("r", [0, 1, 2], "somebody-else", 400);
  const deadline = runtime.now() + 1_000;
  const acquiring = client().redlock.acquire("r", { ttl: 30_000, deadline });
  await runtime.advance(450);
  const lock = await acquiring;
  const remaining = lock.remaining();
  // Without the drift: 1 % and 2 ms.
  expect(remaining).toBeGreaterThan(535);
  expect(remaining).toBeLessThan(550);
  await lock.extend(60_000);
  expect(lock.remaining()).toBeCloseTo(0.99 * 550 - 2);
  expect(lock.ttl).toBe(60_000);
  await runtime.advance(545);
  // Nothing but the deadline is wrong with an extension that comes so late.
  expect(await rejection(lock.extend())).toMatchObject({ code: "LOCK_LOST" });
  await runtime.advance(5);
  expect(lock.signal.reason).toMatchObject({ code: "LOCK_LOST" });
  expect(lock.signal.reason.message).toContain("its validity ended (deadline)");
  // Redis has freed it by itself.
  expect(await client().redlock.tryAcquire("r")).toMatchObject({ resources: ["r"] });
});

describe("a failed acquire", () => {
  /** The first two endpoints are held; the third grants, and its rollback is answered after 70 ms. */
  function split() {
    const { redlock, links, ...world } = oneClient({ wait: 0 });
    world.put("r", [0, 1]);
    const background: Promise<unknown>[] = [];
    links[2]!.fate = ([name]) => (name === "SET" ? "delivered" : world.slow(70));
    return { ...world, redlock, background };
  }

  test("waits for its rollbacks, because nothing else keeps them alive", async () => {
    const { runtime, redlock } = split();
    const call = watch(redlock.acquire("r"));
    await takes(runtime, call, 70);
    expect(call.error).toBeInstanceOf(LockHeldError);
  });

  test("does not wait for them where the platform keeps them alive", async () => {
    const { runtime, redlock, background } = split();
    const call = watch(redlock.acquire("r", { waitUntil: (work) => background.push(work) }));
    await runtime.advance(0);
    expect(call.error).toBeInstanceOf(LockHeldError);
    const work = watch(Promise.all(background));
    expect(background).toHaveLength(1);
    await takes(runtime, work, 70);
  });
});

test("the last round waits for a slow endpoint whose answer decides", async () => {
  const { runtime, client, put, late } = virtualWorld();
  put("r", [1]);
  const { redlock, links } = client();
  // Longer than a round waits that another one follows.
  links[2]!.fate = () => late(80);
  const call = watch(redlock.acquire("r", { wait: 0 }));
  await takes(runtime, call, 80);
  expect(call.error).toBeUndefined();
});

test("a lock whose answers took longer than its ttl is not a lock: it is rolled back", async () => {
  const { runtime, values, slow, redlock, links } = oneClient({ ttl: 100, wait: 0 });
  // Of which 1 ms and 2 ms are drift: exactly nothing remains.
  for (const each of links) each.fate = ([name]) => (name === "SET" ? slow(97) : "delivered");
  const call = watch(redlock.acquire("r"));
  await runtime.advance(97);
  expect(call.error).toBeInstanceOf(QuorumError);
  expect((call.error as QuorumError).votes.map(({ outcome }) => outcome)).toContain("granted");
  expect((call.error as QuorumError).message).toMatch(/too late .*: 100 is 100 ms; did you mean 100_000\?$/);
  expect(values("r")).toEqual([null, null, null]);
});

test("a backoff that throws ends the call with its error, and is not asked where no round follows", async () => {
  const { runtime, redlock, links, put } = oneClient();
  put("r", [0, 1, 2]);
  const error = new Error("no backoff");
  const backoff = () => {
    throw error;
  };
  const calls = [Infinity, 0].map((wait) => watch(redlock.acquire("r", { backoff, wait })));
  await runtime.advance(0);
  expect(calls.map((call) => call.error)).toEqual([error, expect.any(LockHeldError)]);
  // What is no number is no pause.
  const before = links[0]!.sent.length;
  watch(redlock.acquire("r", { backoff: () => (links[0]!.sent.length - before < 3 ? Number.NaN : 1_000) }));
  await runtime.advance(0);
  expect(links[0]!.sent.length - before).toBe(3);
});

describe("one database under two names", () => {
  test("the error of an acquire that nobody is in the way of names the way to find out", async () => {
    const memory = memoryEndpoint();
    const named = (name: string): Endpoint => ({
      name,
      dialect: memory.dialect,
      exactReplies: true,
      send: (command, signal) => memory.send(command, signal),
    });
    const redlock = new Redlock({ endpoints: [named("a"), named("b")], backoff: { min: 1, max: 5 } });
    for (const wait of [0, 40]) {
      const error = await rejection(redlock.acquire("r", { wait }));
      expect(error).toBeInstanceOf(LockHeldError);
      expect(String(error)).toContain("redlock-edge doctor");
    }
  });

  test("that of a lock that this client holds says so, until the hold ends", async () => {
    const { runtime, client } = virtualWorld();
    const { redlock } = client();
    const lock = await redlock.acquire("r");
    const refused = async (from = redlock) => {
      const call = rejection(from.acquire("r", { wait: 100 }));
      await runtime.advance(200);
      return String(await call);
    };
    expect(await refused()).toMatch(/is held by this client: .*ReentrantLock/);
    expect(await refused(client().redlock)).toMatch(/is held by someone else/);
    const lasting = redlock.acquire("other");
    await runtime.advance(10);
    await (await lasting).release();
    expect(await refused()).toMatch(/is held by this client/);
    await lock.release();
    await client().redlock.acquire("r");
    expect(await refused()).toMatch(/is held by someone else/);
  });
});
