import { describe, expect, test } from "vitest";
import { memoryEndpoint, VirtualTime } from "../../../../local/src/memory/index.ts";
import { type Endpoint, LockLostError, QuorumError, Redlock, type Runtime } from "../../../../src/index.ts";
import { type OnceOptions, once } from "../../../../src/sync/index.ts";
import { intervalScript } from "../../../../src/sync/internal/interval.lua.ts";
import { rejection } from "../../../support/outcomes.ts";
import { delays, type VirtualClient, watch } from "../../../support/virtual-client.ts";
import { sentBy, syncWorld } from "../../../support/virtual-sync.ts";

// How a claim of `once` becomes a run in virtual time, and what stays of one that does not.

const newWorld = (options: Parameters<typeof syncWorld>[1] = {}) => syncWorld([intervalScript], options);
const unreachable = () => expect.unreachable("it must not run");

const call = (
  { redlock }: VirtualClient,
  options: Partial<OnceOptions> = {},
  routine: () => unknown = () => undefined,
) => watch(once(redlock, "n", { every: 60_000, ...options }, routine));

const isConfirmation = (command: readonly unknown[]) => command.includes("extend");

describe("a confirmation", () => {
  test("whose answers were lost is sent again, and counts for the whole interval then", async () => {
    const { runtime, client, each } = newWorld();
    const own = client();
    for (const link of own.links) {
      link.fate = (command) => (isConfirmation(command) && link.sent.length < 4 ? "reply lost" : "delivered");
    }
    const ran = call(own, {}, () => "ran");
    await runtime.advance(19);
    expect([ran.settled, sentBy(own)]).toEqual([false, [3, 3, 3]]);
    await runtime.advance(1);
    expect([ran.value, sentBy(own)]).toEqual([{ ran: true, value: "ran" }, [4, 4, 4]]);
    expect(each("PTTL", "once", "n")).toEqual([60_000, 60_000, 60_000]);
    expect(String(each("GET", "once", "n")[0])).toMatch(/^r3:/);
  });

  test("that reaches no quorum within the claim's ttl is given up, and what it stored is released", async () => {
    const { runtime, client, each } = newWorld();
    const own = client();
    for (const link of own.links.slice(1)) {
      link.fate = (command) => (isConfirmation(command) ? "refused" : "delivered");
    }
    const failed = call(own, { ttl: 100 }, unreachable);
    await runtime.advance(96);
    expect(failed.settled).toBe(false);
    await runtime.advance(2);
    expect((failed.error as QuorumError).code).toMatch(/NO_QUORUM|LOCK_LOST/);
    expect(each("EXISTS", "once", "n")).toEqual([0, 0, 0]);
    const next = call(client());
    await runtime.advance(0);
    expect(next.value!.ran).toBe(true);
  });

  test("that finds the claim gone is a loss, at once", async () => {
    const { runtime, client, each } = newWorld();
    const own = client();
    own.links[0]!.fate = (command) => {
      if (isConfirmation(command)) each("DEL", "once", "n");
      return "delivered";
    };
    const lost = call(own, {}, unreachable);
    await runtime.advance(0);
    expect(lost.error).toBeInstanceOf(LockLostError);
    expect(each("EXISTS", "once", "n")).toEqual([0, 0, 0]);
  });
});

describe("the last ms of a claim", () => {
  test("is used for one more round, and then it is the outage that ends the call", async () => {
    const { runtime, client } = newWorld();
    const own = client({ backoff: () => 96 });
    for (const link of own.links)
      link.fate = (command) => (isConfirmation(command) ? "refused" : "delivered");
    const lost = call(own, { ttl: 100 }, unreachable);
    // Its validity is 97 ms.
    await runtime.advance(96);
    expect(lost.settled).toBe(false);
    await runtime.advance(1);
    expect(lost.error).toBeInstanceOf(QuorumError);
  });
});

test("a coarse clock does not delay a claim", async () => {
  for (let every = 40; every < 100; every += 7) {
    const virtual = new VirtualTime({ seed: every });
    let timers = 0;
    // Of a time since 1970, a double has steps of a four-thousandth of a ms.
    const start = 1_763_714_567_890.1;
    const now = () => start + virtual.monotonic();
    const runtime: Runtime = {
      ...virtual,
      now,
      monotonic: now,
      timer(ms, callback) {
        timers += 1;
        if (timers > 1_000) throw new Error(`endless rounds, with pauses of ${ms} ms`);
        return virtual.timer(now() + ms - start - virtual.monotonic(), callback);
      },
    };
    const endpoint = memoryEndpoint({ runtime });
    const deaf: Endpoint = {
      ...endpoint,
      send: (command, signal) =>
        command.includes("extend") || command.includes("IFEQ")
          ? Promise.reject(new Error("unreachable"))
          : endpoint.send(command, signal),
    };
    const redlock = new Redlock({ endpoints: [deaf], runtime, backoff: { min: 5 } });
    const error = await virtual.settle(rejection(once(redlock, "nightly", { every }, unreachable)));
    expect((error as QuorumError).code).toMatch(/NO_QUORUM|LOCK_LOST/);
  }
});

describe("foreign data", () => {
  test.each([
    ["text", "once-end", ["SET", "garbage"]],
    ["text", "once-fence", ["SET", "garbage"]],
    ["a hash", "once-end", ["HSET", "f", "x"]],
    ["a hash", "once-fence", ["HSET", "f", "x"]],
  ] as const)(
    "%s at %s is an error that names the key and the remedy",
    async (_, kind, [command, ...words]) => {
      const { runtime, client, each } = newWorld();
      each(command, kind, "n", ...words);
      const failed = call(client(), { ttl: 100 }, unreachable);
      await runtime.advance(500);
      expect(failed.error).toBeInstanceOf(QuorumError);
      expect((failed.error as Error).message).toContain(`redlock:${kind}:{n}`);
      expect((failed.error as Error).message).toContain("has foreign data: rename or delete it");
      expect(each("EXISTS", "once", "n")).toEqual([0, 0, 0]);
    },
  );
});

describe("an outage", () => {
  test("a late claim of a round that was rolled back is refused", async () => {
    const world = newWorld();
    const { late } = delays(world.runtime);
    const own = world.client();
    for (const link of own.links)
      link.fate = (command) => (command.includes("acquire") ? late(500) : "delivered");
    const failed = call(own, { wait: 0 }, unreachable);
    await world.runtime.advance(150);
    expect(failed.error).toBeInstanceOf(QuorumError);
    expect(Object.entries(world.ttls())).toEqual([
      [expect.stringMatching(/^redlock:void:\{n\}:t[0-9a-f]{32}$/), 60_000 - 50],
    ]);
    // It refuses that claim only.
    const next = call(world.client(), { every: 300 });
    await world.runtime.advance(0);
    expect(next.value).toMatchObject({ ran: true });
    await world.runtime.advance(500);
    expect(world.each("EXISTS", "once", "n")).toEqual([0, 0, 0]);
  });
});
