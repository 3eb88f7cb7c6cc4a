import { describe, expect, test } from "vitest";
import { handoff, type Lock, type LockJSON, LockLostError, QuorumError, resume } from "../../../src/index.ts";
import { delays, virtualWorld, watch } from "../../support/virtual-client.ts";

// What `handoff` writes and `resume` accepts, in virtual time.

/** A world, and the JSON of a lock in it. */
async function handedOff(options: object = {}) {
  const world = virtualWorld();
  const lock = await world.client().redlock.acquire(["a", "b"], { ttl: 10_000, ...options });
  return { ...world, lock, json: await handoff(lock) };
}

/** A lock that the third endpoint has not yet answered, nor its extension to 8 s. It answers each after 90 ms. */
async function unanswered() {
  const { runtime, client } = virtualWorld();
  const { slow } = delays(runtime);
  const { redlock, links } = client();
  links[2]!.fate = () => slow(90);
  const lock = await redlock.acquire("r", { ttl: 10_000 });
  await lock.extend(8_000);
  return { lock, runtime };
}

describe("handoff", () => {
  test("writes all that the receiver needs", async () => {
    const { runtime, json, lock } = await handedOff();
    expect(json).toStrictEqual({
      resources: ["a", "b"],
      prefix: "redlock",
      nonce: lock.token,
      earlier: [],
      owner: "",
      ttl: 10_000,
      validUntil: runtime.now() + 10_000 - 100 - 2,
      endpoints: ["e1", "e2", "e3"],
      pendingAcquires: [],
      pendingExtensions: {},
    });
  });

  test("writes the owner and the fence, where there are any", async () => {
    const { json, lock } = await handedOff({ token: "the-owner", fencing: true });
    expect(json).toMatchObject({ owner: "the-owner", fence: lock.fence });
    expect(json.nonce).not.toBe("the-owner");
  });

  test("names none whose late answer has arrived", async () => {
    const { lock, runtime } = await unanswered();
    await runtime.advance(90);
    expect(await handoff(lock)).toMatchObject({ pendingAcquires: [], pendingExtensions: {} });
  });

  test("waits for all extensions under way, also for one that begins meanwhile", async () => {
    const { runtime, client } = virtualWorld();
    const { slow } = delays(runtime);
    const { redlock, links } = client();
    const lock = await redlock.acquire("r", { ttl: 10_000 });
    for (const each of links) each.fate = () => slow(50);
    const extending = [lock.extend(8_000)];
    const call = watch(handoff(lock));
    await runtime.advance(20);
    extending.push(lock.extend(6_000));
    await runtime.advance(79);
    expect(call.settled).toBe(false);
    await runtime.advance(1);
    await Promise.all(extending);
    expect(call.value).toMatchObject({ ttl: 6_000, validUntil: runtime.now() - 50 + 6_000 - 60 - 2 });
  });

  test("of a lock that is released, lost or handed over already is refused", async () => {
    const { runtime, client } = virtualWorld();
    const { redlock } = client();
    const released = await redlock.acquire("released");
    await released.release();
    const given = await redlock.acquire("given");
    await handoff(given);
    const lost = await redlock.acquire("lost", { ttl: 100 });
    await runtime.advance(100);
    for (const lock of [released, given, lost]) {
      await expect(handoff(lock)).rejects.toBeInstanceOf(LockLostError);
    }
  });
});

describe("resume", () => {
  test.each<[what: string, change: object, error: typeof TypeError | typeof RangeError]>([
    ["no resources", { resources: [] }, RangeError],
    ["a resource that is not a text", { resources: [1] }, TypeError],
    ["a nonce of another length", { nonce: "t123" }, TypeError],
    ["a nonce that is not a text", { nonce: new Array(33).fill("t") }, TypeError],
    ["no nonce", { nonce: undefined }, TypeError],
    ["a nonce that is too long", { nonce: `t${"0".repeat(33)}` }, TypeError],
    ["no earlier nonces", { earlier: undefined }, TypeError],
    ["an earlier nonce of another length", { earlier: ["t123"] }, TypeError],
    ["an owner that is not a text", { owner: 7 }, TypeError],
    ["no owner", { owner: undefined }, TypeError],
    ["an owner that is too long", { owner: "o".repeat(256) }, RangeError],
    ["an owner with half of a surrogate pair", { owner: "\ud800" }, RangeError],
    ["a prefix that is not a text", { prefix: 7 }, TypeError],
    ["no prefix", { prefix: undefined }, TypeError],
    ["a prefix with braces", { prefix: "a{b}" }, RangeError],
    ["a ttl that is too short", { ttl: 9 }, RangeError],
    ["a ttl that is no integer", { ttl: 100.5 }, RangeError],
    ["a ttl that no timer supports", { ttl: 2_147_483_648 }, RangeError],
    ["an end that is not a number", { validUntil: "soon" }, TypeError],
    ["an end beyond all clocks", { validUntil: Infinity }, RangeError],
    ["a fence of 0", { fence: 0 }, RangeError],
    ["a fence that is no integer", { fence: 1.5 }, RangeError],
    ["too few endpoints", { endpoints: ["e1", "e2"] }, RangeError],
    ["other endpoints", { endpoints: ["e1", "e2", "e4"] }, RangeError],
    ["no endpoints", { endpoints: undefined }, RangeError],
    ["an unknown endpoint with an unanswered acquire", { pendingAcquires: ["e1", "e4"] }, TypeError],
    ["no list of endpoints with unanswered acquires", { pendingAcquires: undefined }, TypeError],
    ["an unknown endpoint that is unanswered", { pendingExtensions: { e4: 100 } }, RangeError],
    ["an unanswered ttl that is too short", { pendingExtensions: { e1: 9 } }, RangeError],
    ["an unanswered ttl that no timer supports", { pendingExtensions: { e1: 2_147_483_648 } }, RangeError],
    ["no record of unanswered extensions", { pendingExtensions: undefined }, TypeError],
  ])("refuses %s", async (_what, change, error) => {
    const { client, json } = await handedOff();
    const resuming = () => resume(client().redlock, { ...json, ...change } as LockJSON);
    await expect(resuming()).rejects.toThrow(error);
    const [name = ""] = Object.keys(change);
    if (/^(nonce|earlier|owner|endpoints|resources)$/.test(name)) return;
    await expect(resuming()).rejects.toThrow(new RegExp(`^${name} `));
  });

  test("accepts the bounds of every number, and the endpoints in any order", async () => {
    const { client, json } = await handedOff();
    for (const change of [
      { ttl: 10 },
      { ttl: 2_147_483_647 },
      { fence: 1 },
      { fence: Number.MAX_SAFE_INTEGER },
      { validUntil: -1 },
      { owner: "o".repeat(255) },
      { endpoints: ["e3", "e1", "e2"] },
      { pendingAcquires: ["e2"], pendingExtensions: { e1: 10, e2: 2_147_483_647 } },
    ]) {
      const lock = await resume(client().redlock, { ...json, ...change }, { immediate: true });
      expect(lock.resources).toEqual(["a", "b"]);
    }
  });

  test("goes on for a whole ttl, counted from before its requests", async () => {
    const { runtime, client, json } = await handedOff();
    await runtime.advance(4_000);
    const { redlock, links } = client();
    const { slow } = delays(runtime);
    for (const each of links) each.fate = () => slow(30);
    const call = watch(resume(redlock, json));
    await runtime.advance(30);
    expect((call.value as Lock).remaining()).toBe(10_000 - 100 - 2 - 30);
  });

  test("at once, goes on with the validity that remains by the wall clock, and no longer than the ttl's", async () => {
    const { runtime, client, json } = await handedOff();
    await runtime.advance(4_000);
    const { redlock } = client();
    const remaining = async (given: LockJSON) =>
      (await resume(redlock, given, { immediate: true })).remaining();
    expect(await remaining(json)).toBe(10_000 - 100 - 2 - 4_000);
    expect(await remaining({ ...json, validUntil: runtime.now() + 60_000 })).toBe(9_898);
  });

  test("uses the options of the client and of the call, and the prefix of the lock", async () => {
    const { client, json } = await handedOff({ prefix: "other" });
    const { redlock, events } = client({ prefix: "mine" });
    const lock = await resume(redlock, json, { driftFactor: 0.5 });
    expect(await lock.verify()).toBe(true);
    expect(await lock.extend(1_000)).toBe(498);
    expect(events.map(({ type }) => type)).toContain("extended");
  });

  test("extends only where it is asked to", async () => {
    for (const [autoExtend, extended] of [
      [true, 3],
      [false, 1],
    ] as const) {
      const { runtime, client, json } = await handedOff();
      const { redlock, events } = client();
      await resume(redlock, json, { autoExtend });
      await runtime.advance(10_500);
      expect(events.filter(({ type }) => type === "extended")).toHaveLength(extended);
    }
  });

  test("renews the counters of a fence: when they were renewed is not known", async () => {
    const { client, json, endpoints } = await handedOff({ fencing: true, fenceRetention: 20_000 });
    const ttls = () => endpoints.map(({ engine }) => engine.execute(["PTTL", "redlock:fence:{a}"]));
    await resume(client().redlock, json, { fenceRetention: 80_000 });
    for (const ttl of ttls()) expect(ttl).toBeGreaterThanOrEqual(80_000 + 80_000);
  });

  test("does not rely on an endpoint where a shorter extension of the owner may be executed", async () => {
    const { client, json } = await handedOff({ token: "owner" });
    const { redlock, links } = client();
    const lock = await resume(redlock, { ...json, pendingExtensions: { e1: 1_000, e2: 3_000 } });
    expect(await lock.extend(1_000)).toBe(1_000 - 10 - 2);
    expect(links.map(({ sent }) => sent.length)).toEqual([1, 1, 1]);
    expect(await lock.extend(3_000)).toBe(3_000 - 30 - 2);
    expect(links.map(({ sent }) => sent.length)).toEqual([1, 2, 2]);
    await expect(lock.extend(3_001)).rejects.toBeInstanceOf(QuorumError);
    expect(links.map(({ sent }) => sent.length)).toEqual([1, 2, 3]);
  });

  test("releases with a tombstone where an acquire may still be executed, and without elsewhere", async () => {
    const { client, json, endpoints } = await handedOff();
    const lock = await resume(client().redlock, { ...json, pendingAcquires: ["e2"] });
    expect(await lock.release()).toBe(true);
    const tombstone = `redlock:void:{a}:${json.nonce}`;
    expect(endpoints.map(({ engine }) => engine.execute(["GET", tombstone]))).toEqual([
      null,
      lock.token,
      null,
    ]);
  });

  test("is tried again where those that resume it at once have a part each", async () => {
    const { runtime, client } = virtualWorld({ count: 2 });
    const { late } = delays(runtime);
    const json = await handoff(await client().redlock.acquire("r", { ttl: 10_000 }));
    const near = client({ backoff: { min: 10, max: 10 } });
    const far = client({ backoff: { min: 300, max: 300 } });
    // Each gets the endpoint that is near to it.
    near.links[1]!.fate = () => late(20);
    far.links[0]!.fate = () => late(20);
    const calls = [near, far].map(({ redlock }) => watch(resume(redlock, json)));
    await runtime.advance(5_000);
    const [held, refused] = calls;
    expect((held!.value as Lock).remaining()).toBeGreaterThan(0);
    expect(refused!.error).toBeInstanceOf(LockLostError);
  });

  test("is unclear where contenders keep it from each other until the end of `wait`", async () => {
    const { runtime, client, put } = virtualWorld();
    const json = await handoff(await client().redlock.acquire("r", { ttl: 10_000 }));
    // Two others have an endpoint each, and never go on.
    put("r", [0], "t1");
    put("r", [1], "t2");
    const call = watch(resume(client().redlock, json, { wait: 500 }));
    await runtime.advance(1_000);
    expect(call.error).toBeInstanceOf(QuorumError);
  });

  test("goes on from whatever handle an endpoint knows", async () => {
    const { runtime, client, values } = virtualWorld();
    const give = async (lock: Lock) => JSON.parse(JSON.stringify(await handoff(lock)));
    let json = await give(await client().redlock.acquire("r", { ttl: 60_000 }));
    json = await give(await resume(client().redlock, json));
    // The third endpoint misses this one.
    const missed = client();
    missed.links[2]!.fate = () => ({ before: () => new Promise(() => undefined) });
    const resuming = watch(resume(missed.redlock, json));
    await runtime.advance(200);
    json = await give(resuming.value as Lock);
    // And this one asks nobody.
    json = await give(await resume(client().redlock, json, { immediate: true }));
    const lock = await resume(client().redlock, json);
    await runtime.advance(1);
    expect(values("r")).toEqual([lock.token, lock.token, lock.token]);
    expect(await lock.release()).toBe(true);
    expect(values("r")).toEqual([null, null, null]);
  });
});
