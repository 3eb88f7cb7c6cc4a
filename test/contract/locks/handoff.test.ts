import { describe, expect, test } from "vitest";
import { handoff, type LockJSON, resume } from "../../../src/handoff/index.ts";
import { LockLostError, Redlock } from "../../../src/index.ts";
import { inspect } from "../../../src/inspect/index.ts";
import type { Link } from "../../support/link.ts";
import { rejection } from "../../support/outcomes.ts";
import { oneClient, virtualWorld, watch } from "../../support/virtual-client.ts";

// A lock continues in another process: of those that have its message at most one gets it, and no request of the giver may
// end or shorten the receiver's hold. In virtual time; the timeout of a request is 100 ms.

const free = [null, null, null];
const viaText = (json: LockJSON): LockJSON => JSON.parse(JSON.stringify(json));
const countOf = (links: readonly Link[]) => links.flatMap(({ sent }) => sent).length;

/** A world, and the message about a lock of 30 s that was given away. */
async function givenAway(options: object = {}, { count = 3, resources = "r" as string | string[] } = {}) {
  const world = virtualWorld({ count });
  const lock = await world.client().redlock.acquire(resources, { ttl: 30_000, ...options });
  return { ...world, given: lock, json: viaText(await handoff(lock)) };
}

describe("handoff", () => {
  test.each([{}, { fencing: true, prefix: "other" }])(
    "writes all that the receiver needs: %j",
    async (options) => {
      const { given, json } = await givenAway(options, { resources: ["a", "b"] });
      expect(json).toEqual({
        resources: ["a", "b"],
        prefix: "redlock",
        value: given.token,
        ttl: 30_000,
        fence: given.fence,
        endpoints: ["e1", "e2", "e3"],
        ...("prefix" in options && { prefix: options.prefix }),
      });
    },
  );

  test("ends the giver's handle and its automatic extension, and leaves the lock held", async () => {
    const { runtime, client, redlock, links, events } = oneClient();
    const lock = await redlock.acquire("r", { ttl: 1_000, autoExtend: true });
    const { signal } = lock;
    const before = countOf(links);
    await handoff(lock);
    expect([lock.remaining(), signal.aborted]).toEqual([0, false]);
    expect([await lock.release(), await lock.verify()]).toEqual([false, false]);
    for (const call of [lock.extend(), handoff(lock)])
      expect(await rejection(call)).toBeInstanceOf(LockLostError);
    await runtime.advance(500);
    expect(countOf(links)).toBe(before);
    expect(events.map(({ type }) => type)).toEqual(["acquired", "detached"]);
    expect(await client().redlock.tryAcquire("r")).toBeNull();
  });

  test("leaves the lock held for its whole ttl, even if the giver had a deadline", async () => {
    const { runtime, redlock, client } = oneClient();
    const lock = await redlock.acquire("r", { ttl: 60_000, deadline: runtime.now() + 700 });
    const json = await handoff(lock);
    await runtime.advance(10_000);
    const resumed = await resume(client().redlock, json);
    expect([json.ttl, resumed.ttl, resumed.remaining()]).toEqual([60_000, 60_000, 0.99 * 60_000 - 2]);
  });
});

describe("resume", () => {
  test.each([
    ["redis", {}],
    ["upstash", { fencing: true }],
  ] as const)(
    "goes on for a whole ttl, counted from before its requests, in the %s dialect",
    async (dialect, options) => {
      const { runtime, client, values, slow } = virtualWorld({ dialect });
      const json = viaText(
        await handoff(await client().redlock.acquire(["a", "b"], { ttl: 30_000, ...options })),
      );
      await runtime.advance(4_000);
      const { redlock, links, events } = client();
      for (const each of links) each.fate = () => slow(30);
      const call = watch(resume(redlock, json));
      await runtime.advance(60);
      const lock = call.value!;
      expect([lock.remaining(), lock.fence, countOf(links)]).toEqual([30_000 - 302 - 60, json.fence, 6]);
      expect(lock.token).not.toBe(json.value);
      expect(values("b")).toEqual(new Array(3).fill(lock.token));
      const facts = { resources: ["a", "b"], rounds: 1, elapsed: 60 };
      expect(events).toEqual([{ type: "acquired", ...facts, note: undefined, fence: json.fence }]);
      for (const each of links) each.fate = () => "delivered";
      expect([await lock.verify(), await lock.release()]).toEqual([true, true]);
      expect([...values("a"), ...values("b")]).toEqual([...free, ...free]);
    },
  );

  test("uses the options of the client and of the call, and the prefix of the lock", async () => {
    const { runtime, client, json } = await givenAway({ prefix: "other" });
    const { redlock, events } = client({ prefix: "mine" });
    const lock = await resume(redlock, json, { driftFactor: 0.5, autoExtend: true });
    expect(await lock.extend(1_000)).toBe(498);
    await runtime.advance(1_000);
    expect(await lock.verify()).toBe(true);
    expect(events.filter(({ type }) => type === "extended").length).toBeGreaterThan(2);
  });

  test("renews the counters of a fence: when they were renewed is not known", async () => {
    const { client, json, endpoints } = await givenAway({ fencing: true });
    endpoints[1]!.engine.execute(["DEL", "redlock:fence:{r}"]);
    const { redlock } = client();
    const lock = await resume(redlock, json);
    for (const { engine } of endpoints) {
      expect(engine.execute(["GET", "redlock:fence:{r}"])).toBe(String(lock.fence));
      expect(engine.execute(["PTTL", "redlock:fence:{r}"])).toBe(2 * 86_400_000);
    }
    expect((await inspect(redlock, "r")).fence).toBe(json.fence);
  });

  test("of a lock that was resumed before is a loss, and changes nothing", async () => {
    const { client, json, values } = await givenAway();
    await resume(client().redlock, json);
    const before = values("r");
    const error = await rejection(resume(client().redlock, json));
    expect(error).toBeInstanceOf(LockLostError);
    expect(String(error)).toMatch(/resumed before, or released, or has expired/);
    expect(values("r")).toEqual(before);
  });

  test("accepts the endpoints in another order", async () => {
    const { runtime, client, json } = await givenAway();
    const redlock = new Redlock({ endpoints: [...client().links].reverse(), runtime });
    expect(await (await resume(redlock, json)).release()).toBe(true);
  });
});
