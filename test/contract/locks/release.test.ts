import { describe, expect, test } from "vitest";
import { type Lock, LockLostError, QuorumError, type Redlock } from "../../../src/index.ts";
import { forceRelease } from "../../../src/inspect/index.ts";
import { oneClient, takes, virtualWorld, watch } from "../../support/virtual-client.ts";

// Releases whose requests are repeated, late or unanswered, in virtual time.

describe("a release", () => {
  test.each<[what: string, end: (lock: Lock, redlock: Redlock) => Promise<unknown>]>([
    ["a release", (lock) => lock.release()],
    ["a release by an operator", (_, redlock) => forceRelease(redlock, "r")],
  ])("%s waits for its quorum, then at least 50 ms for the others", async (_, end) => {
    const { runtime, values, late, redlock, links } = oneClient({ timeout: 1_000 });
    const lock = await redlock.acquire("r");
    links[2]!.fate = () => late(900);
    const call = watch(end(lock, redlock));
    await takes(runtime, call, 50);
    // What was sent goes on.
    await runtime.advance(900);
    expect([call.error, values("r")]).toEqual([undefined, [null, null, null]]);
  });

  test("is not changed by an abort of the call that acquired the lock", async () => {
    const caller = new AbortController();
    const lock = await virtualWorld().client().redlock.acquire("r", { signal: caller.signal });
    caller.abort();
    expect([lock.signal.aborted, await lock.verify(), await lock.release()]).toEqual([false, true, true]);
  });

  test("ends an extension that is under way: it rejects where the lock is released while it asks", async () => {
    const { runtime, slow, redlock, links } = oneClient();
    const lock = await redlock.acquire("r", { ttl: 1_000 });
    // Executed at once, and answered after the release.
    for (const each of links) each.fate = () => slow(80);
    const call = watch(lock.extend(2_000));
    await runtime.advance(1);
    for (const each of links) each.fate = () => "delivered";
    expect(await lock.release()).toBe(true);
    await runtime.advance(79);
    expect(call.error).toBeInstanceOf(LockLostError);
    expect(String(call.error)).toContain("released");
    expect(lock.remaining()).toBe(0);
  });

  test("that is called twice at once sends one request to each endpoint", async () => {
    const { redlock, links } = virtualWorld().client();
    const lock = await redlock.acquire("r");
    expect(await Promise.all([lock.release(), lock.release()])).toEqual([true, true]);
    expect(links.map(({ sent }) => sent.length)).toEqual([2, 2, 2]);
  });

  test("waits for a quorum only where the platform keeps its requests alive", async () => {
    const { runtime, client, values, late } = virtualWorld();
    const background: Promise<unknown>[] = [];
    const { redlock, links } = client({ waitUntil: (work) => background.push(work) });
    const lock = await redlock.acquire("r");
    links[2]!.fate = () => late(90);
    expect(await lock.release()).toBe(true);
    expect(values("r")[2]).not.toBe(null);
    const work = watch(Promise.all(background));
    await takes(runtime, work, 90);
    expect(values("r")[2]).toBe(null);
  });

  test("without a quorum of answers says that it is not known, and may be tried again", async () => {
    const { runtime, values, redlock, links, events } = oneClient();
    const lock = await redlock.acquire("r");
    for (const each of links.slice(1)) each.fate = () => "lost";
    const call = watch(lock.release());
    await runtime.advance(100);
    // In a `finally`, an error would replace the result of work that is done.
    expect(call).toMatchObject({ settled: true, value: undefined });
    expect(call.error).toBeUndefined();
    expect(events.filter(({ type }) => type === "endpointError")).toHaveLength(2);
    for (const each of links) each.fate = () => "delivered";
    // One endpoint has been released by the first.
    expect(await lock.release()).toBe(true);
    expect(values("r")).toEqual([null, null, null]);
    expect(await lock.release()).toBe(false);
    // The first has ended the hold.
    expect(events.filter(({ type }) => type === "released")).toMatchObject([
      { freed: undefined, error: expect.any(QuorumError) },
    ]);
  });
});

test.each([["r"], [["r", "s"]]])(
  "a release leaves a tombstone for a minute where an acquire of %j may still be executed, and only there",
  async (resources) => {
    const { redlock, links, endpoints, ...world } = oneClient({ timeout: 1_000, waitUntil: () => undefined });
    links[1]!.fate = ([, , , ...rest]) => (rest.includes("claim") ? world.late(500) : "delivered");
    const lock = await redlock.acquire(resources, { fencing: typeof resources === "string" });
    expect(await lock.release()).toBe(true);
    await world.runtime.advance(250);
    const tombstones = endpoints.map(({ engine }) =>
      (engine.execute(["KEYS", "redlock:void:*"]) as string[]).map((key) => engine.execute(["PTTL", key])),
    );
    expect(tombstones).toEqual([[], [60_000], []]);
    await world.runtime.advance(400);
    for (const resource of lock.resources) expect(world.values(resource)).toEqual([null, null, null]);
  },
);
