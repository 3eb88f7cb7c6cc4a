import { describe, expect, test } from "vitest";
import {
  forceRelease,
  handoff,
  type Lock,
  type LockJSON,
  LockLostError,
  QuorumError,
  resume,
} from "../../../src/index.ts";
import type { Link } from "../../support/link.ts";
import { rejection } from "../../support/outcomes.ts";
import { delays, virtualWorld, watch } from "../../support/virtual-client.ts";

// A lock continues in another process: no request of the giver may end or shorten the receiver's hold. In virtual time;
// the timeout of a request is 100 ms.

const free = [null, null, null];
const viaText = (json: LockJSON): LockJSON => JSON.parse(JSON.stringify(json));
const countOf = (links: readonly Link[]) => links.flatMap(({ sent }) => sent).length;

describe.each(["redis", "upstash"] as const)("a handoff, in the %s dialect", (dialect) => {
  /** A world, and the message about a lock of 30 s that was given away. */
  async function givenAway() {
    const world = virtualWorld({ dialect });
    const json = viaText(await handoff(await world.client().redlock.acquire("r", { ttl: 30_000 })));
    return { ...world, json };
  }

  test("ends the giver's handle, and leaves the lock held", async () => {
    const { client } = virtualWorld({ dialect });
    const { redlock, links } = client();
    const lock = await redlock.acquire("r", { ttl: 30_000 });
    const { signal } = lock;
    const before = countOf(links);
    const json = viaText(await handoff(lock));
    expect([lock.remaining(), signal.aborted]).toEqual([0, false]);
    expect([await lock.release(), await lock.verify()]).toEqual([false, false]);
    expect(await rejection(lock.extend())).toBeInstanceOf(LockLostError);
    expect(await rejection(handoff(lock))).toBeInstanceOf(LockLostError);
    expect(countOf(links)).toBe(before);
    const received = await resume(client().redlock, json);
    expect(received.remaining()).toBe(30_000 - 302);
    expect(await received.release()).toBe(true);
  });

  test("ends the giver's automatic extension: it cannot shorten the receiver's", async () => {
    const { runtime, client, expiries } = virtualWorld({ dialect });
    const { redlock, links } = client();
    const lock = await redlock.acquire("r", { ttl: 1_000, autoExtend: true });
    const received = await resume(client().redlock, viaText(await handoff(lock)));
    await received.extend(60_000);
    const before = countOf(links);
    await runtime.advance(5_000);
    expect([countOf(links), expiries("r")]).toEqual([before, [55_000, 55_000, 55_000]]);
  });

  test("is resumed by one at most of several processes that have the same message", async () => {
    const { runtime, client, json, values } = await givenAway();
    const resuming = [1, 2, 3, 4].map(() => watch(resume(client().redlock, json)));
    await runtime.advance(500);
    const held = resuming.flatMap(({ value }) => value ?? []);
    const refused = resuming.flatMap(({ error }) => error ?? []);
    expect([held.length <= 1, held.length + refused.length]).toEqual([true, 4]);
    for (const error of refused) expect(error).toBeInstanceOf(LockLostError);
    for (const lock of held) {
      expect([await lock.verify(), await lock.release()]).toEqual([true, true]);
      const late = await rejection(resume(client().redlock, json));
      expect(String(late)).toMatch(/resumed before, or released, or has expired/);
      expect(values("r")).toEqual(free);
    }
  });

  test("is taken over by the first extension where nothing may be waited for", async () => {
    const { client, json } = await givenAway();
    const receivers = [client(), client()];
    const [first, second] = await Promise.all(
      receivers.map(({ redlock }) => resume(redlock, json, { immediate: true })),
    );
    expect(receivers.map(({ links }) => countOf(links))).toEqual([0, 0]);
    expect(await first!.extend()).toBe(30_000 - 302);
    expect(second!.remaining()).toBeGreaterThan(20_000);
    expect([await second!.verify(), second!.remaining()]).toEqual([false, 0]);
    expect([await first!.verify(), await first!.release()]).toEqual([true, true]);
  });

  test("is not freed by two that have a part each: neither counts what the other has freed", async () => {
    const { runtime, client, endpoints, json } = await givenAway();
    const given = { ...json, pendingAcquires: json.endpoints };
    const receivers = [client(), client()];
    const locks = await Promise.all(
      receivers.map(({ redlock }) => resume(redlock, given, { immediate: true })),
    );
    endpoints[2]!.engine.execute(["DEL", "redlock:lock:{r}"]);
    for (const [own, { links }] of receivers.entries()) {
      for (const [index, link] of links.entries()) link.fate = () => (index === own ? "delivered" : "lost");
    }
    const extensions = locks.map((lock) => watch(lock.extend()));
    await runtime.advance(200);
    for (const { error } of extensions) expect(error).toBeInstanceOf(QuorumError);
    for (const { links } of receivers) for (const link of links) link.fate = () => "delivered";
    for (const lock of locks) {
      const released = watch(lock.release());
      await runtime.advance(200);
      expect(released.value).toBe(false);
    }
  });

  test("can be resumed again after an outage, whatever has been executed of the first attempt", async () => {
    const { runtime, client, json, values } = await givenAway();
    const unlucky = client();
    for (const link of unlucky.links.slice(0, 2)) link.fate = () => "reply lost";
    const failed = watch(resume(unlucky.redlock, json));
    await runtime.advance(200);
    expect(failed.error).toBeInstanceOf(QuorumError);
    const lock = await resume(client().redlock, json);
    expect([await lock.verify(), await lock.release()]).toEqual([true, true]);
    expect(values("r")).toEqual(free);
  });

  test("takes over, at its next extension, an endpoint that was down meanwhile", async () => {
    const { runtime, client, json, values } = await givenAway();
    const { redlock, links } = client();
    links[2]!.fate = () => "lost";
    const resuming = watch(resume(redlock, json));
    await runtime.advance(100);
    const lock = resuming.value!;
    links[2]!.fate = () => "delivered";
    await lock.extend();
    await runtime.advance(0);
    expect(new Set(values("r"))).toEqual(new Set([lock.token]));
    expect(await lock.release()).toBe(true);
    expect(values("r")).toEqual(free);
  });

  test("waits for an extension under way", async () => {
    const { runtime, client } = virtualWorld({ dialect });
    const { redlock, links } = client();
    const lock = await redlock.acquire("r", { ttl: 10_000 });
    for (const link of links) link.fate = () => delays(runtime).slow(50);
    void lock.extend(40_000);
    const handingOff = watch(handoff(lock));
    await runtime.advance(49);
    expect(handingOff.settled).toBe(false);
    await runtime.advance(1);
    expect(handingOff.value).toMatchObject({ ttl: 40_000, validUntil: runtime.now() + 40_000 - 402 - 50 });
  });

  test("leaves a shorter extension that is unanswered without effect", async () => {
    const { runtime, client, expiries } = virtualWorld({ count: 1, dialect });
    const { redlock, links } = client();
    const lock = await redlock.acquire("r", { ttl: 60_000 });
    links[0]!.fate = () => delays(runtime).late(1_000);
    const shorter = rejection(lock.extend(20_000));
    await runtime.advance(100);
    await shorter;
    links[0]!.fate = () => "delivered";
    const received = await resume(client().redlock, viaText(await handoff(lock)));
    await received.extend(60_000);
    await runtime.advance(1_000);
    expect(expiries("r")).toEqual([59_000]);
    expect(await received.release()).toBe(true);
  });

  test("carries an owner's shorter extension that is unanswered: nobody relies on that endpoint", async () => {
    const { runtime, client } = virtualWorld({ count: 1, dialect });
    const { redlock, links } = client();
    const lock = await redlock.acquire("r", { ttl: 10_000, token: "the-owner" });
    links[0]!.fate = () => delays(runtime).late(1_500);
    const shorter = rejection(lock.extend(2_000));
    await runtime.advance(100);
    await shorter;
    links[0]!.fate = () => "delivered";
    const json = viaText(await handoff(lock));
    expect(Object.values(json.pendingExtensions)).toEqual([2_000]);
    const received = await resume(client().redlock, json);
    // Executed after this extension, the earlier one would shorten it.
    expect(await rejection(received.extend(10_000))).toMatchObject({ code: "NO_QUORUM" });
    expect(received.remaining()).toBeLessThan(2_000);
    await runtime.advance(1_500);
    expect(await received.release()).toBe(true);
  });

  test.each([
    ["fenced", { fencing: true }],
    ["with a token", { token: "the-owner" }],
  ])("carries an unanswered acquire: its release leaves a tombstone, %s", async (_, options) => {
    const { runtime, client, values } = virtualWorld({ dialect });
    const { redlock, links } = client({ timeout: 5_000, waitUntil: () => undefined });
    links[2]!.fate = () => delays(runtime).late(1_000);
    const lock = await redlock.acquire("r", { ...options, ttl: 30_000 });
    const json = viaText(await handoff(lock));
    expect(json.pendingAcquires).toHaveLength(1);
    const received = await resume(client({ waitUntil: () => undefined }).redlock, json);
    expect(await received.release()).toBe(true);
    await runtime.advance(2_000);
    expect(values("r")).toEqual(free);
  });

  test("of a lock that has expired meanwhile is a loss, and sends nothing", async () => {
    const { runtime, client, json } = await givenAway();
    await runtime.advance(30_000);
    const { redlock, links } = client();
    expect(await rejection(resume(redlock, json))).toBeInstanceOf(LockLostError);
    const resumed = await resume(redlock, json, { immediate: true });
    expect([resumed.remaining(), resumed.signal.reason]).toEqual([0, expect.any(LockLostError)]);
    expect(await rejection(resumed.extend())).toBeInstanceOf(LockLostError);
    expect(countOf(links)).toBe(0);
  });

  test("rejects a lost or released lock, and a client with other endpoints", async () => {
    const { client, json } = await givenAway();
    const { redlock } = client();
    const elsewhere = await rejection(resume(virtualWorld({ count: 1 }).client().redlock, json));
    expect(elsewhere).toBeInstanceOf(RangeError);
    expect(String(elsewhere)).toMatch(/the endpoints that acquired the lock/);
    const released: Lock = await resume(redlock, json);
    await released.release();
    expect(await rejection(handoff(released))).toBeInstanceOf(LockLostError);
    const lost = await redlock.acquire("r");
    await forceRelease(redlock, "r");
    await rejection(lost.extend());
    expect(await rejection(handoff(lost))).toBeInstanceOf(LockLostError);
  });
});
