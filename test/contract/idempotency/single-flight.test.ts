import { describe, expect, test } from "vitest";
import {
  type FlightContext,
  type IdempotencyEvent,
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
import { silence } from "../../support/virtual-runs.ts";

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
    const { call, gates, computed } = callers(world, { ttl: (value) => (value === "short" ? -1 : 60_000) });
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

  test("whose ttl is Infinity is shared for 30 days", async () => {
    const world = virtualWorld();
    const { call, gates, computed } = callers(world, { ttl: () => Number.POSITIVE_INFINITY });
    await call();
    gates[0]!.open("one");
    await world.runtime.advance(30 * 86_400_000 - 1_000);
    expect((await call()).value).toBe("one");
    await world.runtime.advance(1_000);
    await call();
    await computed(2);
  });
});
