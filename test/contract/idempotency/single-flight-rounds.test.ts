import { describe, expect, test } from "vitest";
import {
  SharedFailureError,
  type SingleFlightOptions,
  singleFlight,
} from "../../../src/idempotency/index.ts";
import { QuorumError } from "../../../src/index.ts";
import { type Gate, gate } from "../../support/link.ts";
import { until } from "../../support/until.ts";
import { type VirtualClient, type VirtualWorld, virtualWorld, watch } from "../../support/virtual-client.ts";
import { silence } from "../../support/virtual-runs.ts";

// One caller computes, the others share its value; in virtual time. The timeout of a request is 100 ms.

/** Callers in processes of their own, and how often they compute. */
function callers(world: VirtualWorld, defaults: Partial<SingleFlightOptions<string>> = {}) {
  const gates: Gate<string>[] = [];
  const call = async (options: Partial<SingleFlightOptions<string>> = {}, client = world.client()) => {
    const compute = () => {
      const ended = gate<string>();
      gates.push(ended);
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
  const returned = async (watched: Awaited<ReturnType<typeof call>>) => {
    await until(async () => {
      await world.runtime.advance(10);
      return watched.settled;
    }, "the value");
    return watched.value;
  };
  return { call, gates, computed, returned };
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
    await world.runtime.advance(800);
    expect((await call()).value).toBe("one");
    await world.runtime.advance(200);
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
    gates[0]!.open(Promise.reject(new Error("no")) as never);
    await world.runtime.advance(200);
    expect(first.error).toEqual(new Error("no"));
    expect(gates).toHaveLength(2);
    gates[1]!.open("yes");
    await world.runtime.advance(200);
    expect(waiting.map(({ value }) => value)).toEqual(["yes", "yes"]);
  });

  test("shares its failure where that is wanted, with those that wait only", async () => {
    const world = virtualWorld();
    const { call, gates, computed } = callers(world, { onFailure: "share" });
    const first = await call();
    const waiting = await call();
    await world.runtime.advance(50);
    gates[0]!.open(Promise.reject(new Error("no")) as never);
    await world.runtime.advance(200);
    expect(first.error).toEqual(new Error("no"));
    expect(waiting.error).toBeInstanceOf(SharedFailureError);
    expect(waiting.error).toMatchObject({ code: "SHARED_FAILURE", key: "key", reason: "no" });
    await call();
    await computed(2);
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
    const { call, gates, returned } = callers(world, { lease: 1_000, wait: 5_000 });
    const client = world.client();
    const dead = await call({}, client);
    silence(client.links);
    const waiting = await call();
    await world.runtime.advance(1_500);
    expect(gates).toHaveLength(2);
    gates[1]!.open("second");
    expect(await returned(waiting)).toBe("second");
    // Its own value is older.
    for (const link of client.links) link.fate = () => "delivered";
    gates[0]!.open("first");
    expect(await returned(dead)).toBe("second");
  });

  test("throws in an outage, or runs without protection, as it is told", async () => {
    const world = virtualWorld();
    const { call, gates } = callers(world, { wait: 0 });
    const client = world.client();
    silence(client.links);
    const refused = await call({}, client);
    await world.runtime.advance(500);
    expect(refused.error).toBeInstanceOf(QuorumError);
    expect(gates).toHaveLength(0);
    const unguarded = await call({ onOutage: "run" }, client);
    await world.runtime.advance(500);
    gates[0]!.open("alone");
    await world.runtime.advance(0);
    expect(unguarded.value).toBe("alone");
  });

  test("whose value cannot be stored is returned, and computed again by the next caller", async () => {
    const world = virtualWorld();
    const { redlock } = world.client();
    let count = 0;
    const compute = () => {
      count += 1;
      const value: { self?: unknown } = {};
      value.self = value;
      return value as { self?: string };
    };
    for (let call = 1; call <= 2; call += 1) {
      const value = watch(singleFlight(redlock, "key", { ttl: 60_000 }, compute));
      await until(async () => {
        await world.runtime.advance(10);
        return value.settled;
      }, "the value");
      expect(value.value).toHaveProperty("self");
    }
    expect(count).toBe(2);
  });

  test.each([
    [{}, TypeError],
    [{ ttl: -1 }, RangeError],
    [{ ttl: 1, wait: Number.NaN }, RangeError],
    [{ ttl: 1, onOutage: "maybe" }, RangeError],
    [{ ttl: 1, onFailure: true }, RangeError],
    [{ ttl: 1, retention: 5 }, TypeError],
  ])("refuses %j", async (options, error) => {
    const { redlock } = virtualWorld().client();
    const given = options as unknown as SingleFlightOptions<number>;
    await expect(singleFlight(redlock, "key", given, () => 1)).rejects.toBeInstanceOf(error);
  });
});
