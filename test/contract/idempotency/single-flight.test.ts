import { describe, expect, test } from "vitest";
import {
  type FlightContext,
  forgetKey,
  Idempotency,
  type IdempotencyEvent,
  inspectKey,
  LeaseLostError,
  type SingleFlightOptions,
  singleFlight,
} from "../../../src/idempotency/index.ts";
import { QuorumError } from "../../../src/index.ts";
import { type Gate, gate } from "../../support/link.ts";
import { until } from "../../support/until.ts";
import {
  delays,
  type VirtualClient,
  type VirtualWorld,
  virtualWorld,
  watch,
} from "../../support/virtual-client.ts";
import { put, silence, textsOf } from "../../support/virtual-runs.ts";

// One caller computes, the others share its value; in virtual time. The timeout of a request is 100 ms.

/** Callers in processes of their own, and how often they compute. */
function callers(world: VirtualWorld, defaults: Partial<SingleFlightOptions<string>> = {}) {
  const gates: Gate<string | Promise<string>>[] = [];
  const contexts: FlightContext[] = [];
  const call = async (options: Partial<SingleFlightOptions<string>> = {}, client = world.client()) => {
    const compute = async (context: FlightContext) => {
      const ended = gate<string | Promise<string>>();
      gates.push(ended);
      contexts.push(context);
      return ended.passed;
    };
    const before = sent(client);
    const value = watch(
      singleFlight(client.redlock, "key", { ttl: 1_000, ...defaults, ...options }, compute),
    );
    await until(() => sent(client) > before || value.settled, "its requests");
    await world.runtime.advance(0);
    return value;
  };
  /** Waits until so many have computed: keys are hashed in real time. */
  const computed = (count: number) =>
    until(async () => {
      await world.runtime.advance(0);
      return gates.length === count;
    }, `${count} computations`);
  /** What a call has returned, once it has: keys are hashed in real time. */
  const returned = async (watched: Awaited<ReturnType<typeof call>>, meanwhile?: () => void) => {
    await until(async () => {
      await world.runtime.advance(10);
      meanwhile?.();
      return watched.settled;
    }, "the value");
    return watched.value;
  };
  return { call, gates, contexts, computed, returned };
}

const sent = ({ links }: VirtualClient) => links.flatMap((link) => link.sent).length;

/** Waits until a call has ended: keys are hashed in real time. */
const settled = (world: VirtualWorld, call: { readonly settled: boolean }) =>
  until(async () => {
    await world.runtime.advance(10);
    return call.settled;
  }, "the end of the call");

describe("a single flight", () => {
  test("is computed by one caller, and shared with those that wait and those that come within its ttl", async () => {
    const world = virtualWorld();
    const { call, gates, computed } = callers(world);
    const first = await call();
    const waiting = [await call(), await call()];
    await world.runtime.advance(500);
    expect(gates).toHaveLength(1);
    gates[0]!.open("one");
    await world.runtime.advance(100);
    expect([first, ...waiting].map(({ value }) => value)).toEqual(["one", "one", "one"]);
    await world.runtime.advance(899);
    expect((await call()).value).toBe("one");
    await world.runtime.advance(1);
    const later = await call();
    await computed(2);
    gates[1]!.open("two");
    await world.runtime.advance(100);
    expect(later.value).toBe("two");
    expect((await call()).value).toBe("two");
  });

  test("has the ttl that its value says; those that wait share it even without one", async () => {
    const world = virtualWorld();
    const { call, gates, computed } = callers(world, { ttl: (value) => (value === "short" ? 0 : 60_000) });
    const first = await call();
    const waiting = await call();
    await world.runtime.advance(50);
    gates[0]!.open("short");
    await world.runtime.advance(100);
    expect([first.value, waiting.value]).toEqual(["short", "short"]);
    const second = await call();
    await computed(2);
    gates[1]!.open("long");
    await world.runtime.advance(59_000);
    expect([second.value, (await call()).value]).toEqual(["long", "long"]);
  });

  test("that fails is computed by one of those that wait", async () => {
    const world = virtualWorld();
    const { call, gates } = callers(world);
    const first = await call();
    const waiting = [await call(), await call()];
    gates[0]!.open(Promise.reject(new Error("no")));
    await world.runtime.advance(200);
    expect(first.error).toEqual(new Error("no"));
    expect(gates).toHaveLength(2);
    gates[1]!.open("yes");
    await world.runtime.advance(200);
    expect(waiting.map(({ value }) => value)).toEqual(["yes", "yes"]);
  });

  test("ends its waiting with the time, and with the signal", async () => {
    const world = virtualWorld();
    const { call } = callers(world);
    await call();
    const controller = new AbortController();
    const timed = await call({ wait: 300 });
    const aborted = await call({ signal: controller.signal });
    controller.abort(new Error("enough"));
    await world.runtime.advance(500);
    expect(timed.error).toMatchObject({ code: "IN_PROGRESS" });
    expect(aborted.error).toEqual(new Error("enough"));
  });

  test("is taken over when its process dies", async () => {
    const world = virtualWorld();
    const { call, gates, contexts, returned } = callers(world, { lease: 1_000, wait: 5_000 });
    const client = world.client();
    const dead = await call({}, client);
    silence(client.links);
    const waiting = await call();
    await world.runtime.advance(1_500);
    expect(gates).toHaveLength(2);
    expect(contexts.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    gates[1]!.open("second");
    expect(await returned(waiting)).toBe("second");
    // Its own value is older.
    for (const link of client.links) link.fate = () => "delivered";
    gates[0]!.open("first");
    expect(await returned(dead)).toBe("second");
  });

  test("throws in an outage, or runs without protection, as it is told", async () => {
    const world = virtualWorld();
    const { call, gates, contexts } = callers(world, { wait: 0 });
    const client = world.client();
    const { signal } = new AbortController();
    silence(client.links);
    const refused = await call({}, client);
    await world.runtime.advance(500);
    expect(refused.error).toBeInstanceOf(QuorumError);
    expect(gates).toHaveLength(0);
    const unguarded = await call({ failOpen: true, signal }, client);
    await world.runtime.advance(500);
    expect(contexts.map((context) => context.signal)).toEqual([signal]);
    gates[0]!.open("alone");
    await world.runtime.advance(0);
    expect(unguarded.value).toBe("alone");
  });

  test.each<[what: string, value: unknown, got: unknown]>([
    ["as JSON returns it", { at: new Date(0), gone: undefined }, { at: "1970-01-01T00:00:00.000Z" }],
    ["as it is where JSON would lose a part of it", new Map([[1, 2]]), new Map([[1, 2]])],
  ])("is returned in an outage %s", async (_, value, got) => {
    const world = virtualWorld();
    const client = world.client();
    silence(client.links);
    const options = { ttl: 1_000, wait: 0, failOpen: true } as const;
    const alone = watch(singleFlight(client.redlock, "key", options, () => value as never));
    await settled(world, alone);
    expect(alone.value).toStrictEqual(got);
  });

  test("is computed anew after its ttl also while a minority of the endpoints is silent", async () => {
    const world = virtualWorld();
    const { call, gates, returned } = callers(world);
    const first = await call();
    gates[0]!.open("one");
    await world.runtime.advance(1_500);
    const client = world.client();
    silence(client.links.slice(2));
    const second = await call({}, client);
    await returned(second, () => gates[1]?.open("two"));
    expect([first.value, second.value]).toEqual(["one", "two"]);
  });

  test("is no outage while another caller computes", async () => {
    const world = virtualWorld();
    const { call, gates } = callers(world, { failOpen: true, wait: 0 });
    await call();
    const second = await call();
    await world.runtime.advance(500);
    expect(second.error).toMatchObject({ code: "IN_PROGRESS" });
    expect(gates).toHaveLength(1);
  });

  test.each([
    new LeaseLostError("other", "its computation uses the library itself"),
    new QuorumError("acquire", ["other"], []),
  ])("throws what its computation throws, whatever its code: $code", async (error) => {
    const world = virtualWorld();
    const { call, gates } = callers(world, { failOpen: true });
    const first = await call();
    gates[0]!.open(Promise.reject(error));
    await world.runtime.advance(500);
    expect(first.error).toBe(error);
    expect(gates).toHaveLength(1);
  });

  test("is shared with those that begin in the ms in which it ends, even without a ttl", async () => {
    const world = virtualWorld();
    const { call, gates } = callers(world, { ttl: 0 });
    await call();
    await world.runtime.advance(50);
    const waiting = await call();
    gates[0]!.open("one");
    await world.runtime.advance(100);
    expect(waiting.value).toBe("one");
    expect(gates).toHaveLength(1);
  });

  test("that is too old is computed by one of those that find it so", async () => {
    const world = virtualWorld();
    const { call, gates, computed, returned } = callers(world, { scope: "tenant", wait: 5_000 });
    const old = await call();
    gates[0]!.open("one");
    await world.runtime.advance(1_500);
    // It has read the old value, and asks to forget it when the other has begun to compute.
    const slow = world.client();
    for (const each of slow.links) each.fate = () => delays(world.runtime).slow(30);
    const late = await call({}, slow);
    const quick = await call();
    await computed(2);
    await until(async () => {
      await world.runtime.advance(10);
      return sent(slow) > 6;
    }, "its next begin");
    expect([late.settled, gates.length]).toEqual([false, 2]);
    gates[1]!.open("two");
    expect([old.value, await returned(quick), await returned(late)]).toEqual(["one", "two", "two"]);
    // A key in another scope is another one.
    await call({ scope: "another" });
    await computed(3);
  });

  test("that has replaced an old one stays, also for those that have read the old one", async () => {
    const world = virtualWorld();
    const { call, gates, computed, returned } = callers(world);
    await call();
    gates[0]!.open("one");
    await world.runtime.advance(1_500);
    const slow = world.client();
    for (const each of slow.links) each.fate = () => delays(world.runtime).slow(30);
    const late = await call({}, slow);
    const quick = await call();
    await computed(2);
    gates[1]!.open("two");
    await world.runtime.advance(0);
    expect(quick.value).toBe("two");
    expect(await returned(late, () => gates[2]?.open("three"))).toBe("two");
  });

  test("that is too old is computed beside another's claim, which stays", async () => {
    const world = virtualWorld();
    const { call, gates, computed } = callers(world);
    await call();
    gates[0]!.open("one");
    await world.runtime.advance(1_500);
    await put(world, [undefined, undefined, "P1 another 1 -"], 30_000, "flight");
    await call();
    await computed(2);
    expect(textsOf(world, "flight")[2]).toBe("P1 another 1 -");
  });

  test("that is too old, and that an endpoint does not remove, is not returned", async () => {
    const world = virtualWorld();
    const { call, gates, returned } = callers(world, { wait: 1_000 });
    await call();
    gates[0]!.open("one");
    await world.runtime.advance(1_500);
    const client = world.client();
    const isBegin = (command: readonly unknown[]) => command.includes("claim");
    client.links[2]!.fate = (command) => (isBegin(command) ? "delivered" : "refused");
    const second = await call({}, client);
    await returned(second);
    expect(second.error).toMatchObject({ code: "NO_QUORUM" });
    expect(gates).toHaveLength(1);
  });

  test("has nothing in common with a run of the same key", async () => {
    const world = virtualWorld();
    const { redlock } = world.client();
    const idempotency = new Idempotency(redlock);
    const paid = await idempotency.run("order:8", () => null);
    const fly = (compute: () => string) => singleFlight(redlock, "order:8", { ttl: 60_000 }, compute);
    await expect(fly(() => expect.unreachable("it fails"))).rejects.toThrow("it fails");
    expect(await fly(() => "value")).toBe("value");
    expect(await fly(() => "another")).toBe("value");
    const again = await idempotency.run("order:8", () => expect.unreachable("it is paid"));
    expect([paid.status, again]).toEqual(["executed", { status: "replayed", value: null }]);
    expect(await forgetKey(idempotency, "order:8")).toBe(true);
    expect((await inspectKey(idempotency, "order:8", { kind: "flight" })).state).toBe("complete");
    expect(await forgetKey(idempotency, "order:8", { kind: "flight" })).toBe(true);
    expect(await fly(() => "another")).toBe("another");
  });

  const large = "x".repeat(1_000_000);
  test.each<[what: string, value: unknown, reason: string]>([
    ["above 1 MB", { large }, "too-large"],
    ["that JSON would lose", new Map([["token", "t"]]), "unserializable"],
    ["that has no JSON", () => "t", "unserializable"],
  ])("does not share a value %s, and says so: the next one computes", async (_, value, reason) => {
    const world = virtualWorld();
    const reasons: unknown[] = [];
    const onEvent = (event: IdempotencyEvent) => {
      if (event.type === "unstored") reasons.push(event.reason);
    };
    const { call, gates, computed, returned } = callers(world, { ttl: 60_000, onEvent });
    const first = await call();
    const waiting = await call();
    gates[0]!.open(value as string);
    expect(await returned(first)).toBe(value);
    await computed(2);
    expect(waiting.settled).toBe(false);
    gates[1]!.open(value as string);
    expect(await returned(waiting)).toBe(value);
    expect(reasons).toEqual([reason, reason]);
  });

  test.each([
    ["Infinity is shared for 30 days", Number.POSITIVE_INFINITY, 30 * 86_400_000],
    ["a negative number is not shared later", -1, 0],
  ])("whose ttl is %s", async (_, ttl, ms) => {
    const world = virtualWorld();
    const { call, gates, computed } = callers(world, { ttl: () => ttl });
    const first = await call();
    const waiting = await call();
    gates[0]!.open("one");
    await world.runtime.advance(200);
    expect([first.value, waiting.value]).toEqual(["one", "one"]);
    if (ms > 0) {
      await world.runtime.advance(ms - 1_000);
      expect((await call()).value).toBe("one");
      await world.runtime.advance(1_000);
    }
    await call();
    await computed(2);
  });

  test.each<[what: string, ttl: () => unknown, error: RegExp]>([
    ["an error", () => Object(undefined).of.token, /^TypeError: .*undefined/],
    ["NaN", () => Number.NaN, /^TypeError: ttl must return a number of ms/],
    ["text", () => "5000", /^TypeError: ttl must return a number of ms/],
    ["a rejection", () => Promise.reject(new Error("no")), /^TypeError: ttl must return a number of ms/],
  ])("whose ttl is %s is returned, and not shared", async (_, ttl, error) => {
    const world = virtualWorld();
    const ends: unknown[] = [];
    const onEvent = (event: IdempotencyEvent) => event.type === "unstored" && ends.push(event.error);
    const { call, gates, computed } = callers(world, { ttl: ttl as () => number, onEvent });
    const first = await call();
    await call();
    gates[0]!.open("one");
    await world.runtime.advance(200);
    expect(first.value).toBe("one");
    expect(String(ends[0])).toMatch(error);
    await computed(2);
  });

  test("whose value cannot be stored is returned, and computed again by the next caller", async () => {
    const world = virtualWorld();
    const { redlock, links } = world.client();
    let count = 0;
    const compute = () => {
      count += 1;
      silence(links.slice(2));
      const value: { self?: unknown } = {};
      value.self = value;
      return value as { self?: string };
    };
    for (let call = 1; call <= 2; call += 1) {
      const value = watch(singleFlight(redlock, "key", { ttl: 60_000 }, compute));
      await settled(world, value);
      expect(value.value).toHaveProperty("self");
    }
    expect(count).toBe(2);
  });
});
