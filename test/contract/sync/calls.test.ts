import { describe, expect, test } from "vitest";
import { LockHeldError, QuorumError, type Redlock } from "../../../src/index.ts";
import {
  CountDownLatch,
  CyclicBarrier,
  debounce,
  Mailbox,
  once,
  refreshOnce,
  singleton,
  type WaitOptions,
} from "../../../src/sync/index.ts";
import { arrivalScript } from "../../../src/sync/internal/arrival.lua.ts";
import { intervalScript } from "../../../src/sync/internal/interval.lua.ts";
import { delays, type VirtualClient, watch } from "../../support/virtual-client.ts";
import { sentBy, syncWorld } from "../../support/virtual-sync.ts";
import { holders } from "./holders.ts";

// What the calls of all synchronizers have in common, in virtual time: how they end without a result.

type Options = Pick<WaitOptions, "wait" | "signal" | "deadline">;
type Call = (redlock: Redlock, options: Options) => Promise<unknown>;

const unreachable = () => expect.unreachable("it must not run");
const parts = { read: () => 0, isFresh: () => false, refresh: unreachable, write: unreachable };

const calls: Record<string, Call> = {
  "CountDownLatch.wait": (redlock, options) => new CountDownLatch(redlock, "n", { count: 2 }).wait(options),
  "CountDownLatch.arrive": (redlock, options) =>
    new CountDownLatch(redlock, "n", { count: 2 }).arrive("a", options),
  "CountDownLatch.inspect": (redlock, options) =>
    new CountDownLatch(redlock, "n", { count: 2 }).inspect(options),
  "CyclicBarrier.arriveAndWait": (redlock, options) =>
    new CyclicBarrier(redlock, "n", { parties: 2 }).arriveAndWait("a", options),
  "Mailbox.post": (redlock, options) =>
    new Mailbox(redlock, "n").post({ id: "a", value: 1 }, unreachable, options),
  "Mailbox.drain": (redlock, options) => new Mailbox(redlock, "n").drain(unreachable, options),
  once: (redlock, options) => once(redlock, "n", { every: 60_000, ...options }, unreachable),
  debounce: (redlock, options) => debounce(redlock, "n", { window: 50, ...options }, unreachable),
  refreshOnce: (redlock, options) => refreshOnce(redlock, "n", { ...parts, ...options }),
  ...Object.fromEntries(
    (["skip", "coalesce", "cancel"] as const).map((mode) => [
      `singleton, ${mode}`,
      (redlock: Redlock, options: Options) => singleton(redlock, "n", { mode, ...options }, unreachable),
    ]),
  ),
  ...Object.fromEntries(
    holders.map(({ title, acquire }) => [
      title,
      (redlock: Redlock, { wait, ...call }: Options) =>
        acquire(redlock, "n", wait === undefined ? {} : { wait }, call as object),
    ]),
  ),
};

/** All endpoints refuse every request; and every command that a client has sent. */
function newWorld() {
  const scripts = [arrivalScript, intervalScript, ...holders.map(({ script }) => script)];
  const world = syncWorld(scripts);
  const cutOff = (options: Parameters<typeof world.client>[0] = {}) => {
    const own = world.client(options);
    for (const link of own.links) link.fate = () => "refused";
    return own;
  };
  const stored = () => world.endpoints.flatMap((_, index) => Object.keys(world.ttls(index)));
  return { ...world, cutOff, stored };
}

const total = (client: VirtualClient) => sentBy(client).reduce((sum, count) => sum + count, 0);

describe.each(Object.entries(calls))("a call of %s", (name, call) => {
  test("that has aborted already sends nothing", async () => {
    const { runtime, client } = newWorld();
    const own = client();
    const ended = watch(call(own.redlock, { signal: AbortSignal.abort("before") }));
    await runtime.advance(1_000);
    expect([ended.error, total(own)]).toEqual(["before", 0]);
  });

  test("ends at once with an abort, while answers or the end of a pause are awaited", async () => {
    const { runtime, client, cutOff, stored } = newWorld();
    const { slow } = delays(runtime);
    const waiting = client();
    for (const link of waiting.links) link.fate = () => slow(90);
    const caller = new AbortController();
    const ended = [waiting, cutOff({ backoff: () => 60_000 })].map(({ redlock }) =>
      watch(call(redlock, { signal: caller.signal, wait: 100_000 })),
    );
    await runtime.advance(10);
    expect(ended.map(({ settled }) => settled)).toEqual([false, false]);
    caller.abort(new Error("enough"));
    await runtime.advance(0);
    expect(ended.map(({ error }) => error)).toEqual([caller.signal.reason, caller.signal.reason]);
    await runtime.advance(1_000);
    // Arrivals and messages count nevertheless.
    if (!/Latch|Barrier/.test(name))
      expect(
        stored().filter((key) => !/:(void|fence|limit|mailbox-order|mailbox-values):/.test(key)),
      ).toEqual([]);
    expect(runtime.pending).toBe(0);
  });

  test.each([120, 250])(
    "ends at once with an abort after %i ms, while it takes back what it left",
    async (ms) => {
      const { runtime, client } = newWorld();
      const own = client();
      // No answer within 100 ms, neither to what it asks nor to what takes it back.
      for (const link of own.links) link.fate = () => "lost";
      const caller = new AbortController();
      const ended = watch(call(own.redlock, { signal: caller.signal, wait: 1 }));
      await runtime.advance(ms);
      caller.abort(new Error("enough"));
      await runtime.advance(0);
      expect(ended.settled).toBe(true);
    },
  );

  test("waits an outage out for `wait`, then it is a QuorumError", async () => {
    const { runtime, cutOff } = newWorld();
    const own = cutOff();
    const ended = watch(call(own.redlock, { wait: 25 }));
    await runtime.advance(24);
    expect(ended.settled).toBe(false);
    const before = total(own);
    await runtime.advance(200);
    expect(ended.error).toBeInstanceOf(QuorumError);
    expect((ended.error as QuorumError).votes.map(({ outcome }) => outcome)).toEqual([
      "error",
      "error",
      "error",
    ]);
    // In the last ms once more, and what rolls back.
    expect(before).toBeGreaterThanOrEqual(9);
    await runtime.advance(1_000);
    const after = total(own);
    await runtime.advance(100_000);
    expect(total(own)).toBe(after);
  });

  if (name === "debounce") return;
  test("has no quorum in time where its answers come after the deadline", async () => {
    const { runtime, client } = newWorld();
    const own = client();
    for (const link of own.links) link.fate = () => delays(runtime).slow(50);
    const ended = watch(call(own.redlock, { deadline: runtime.now() + 20 }));
    await runtime.advance(1_000);
    // An arrival counts all the same.
    if (!/Latch|Barrier/.test(name)) expect(ended.error).toBeInstanceOf(QuorumError);
    else expect(ended.error).not.toBeInstanceOf(RangeError);
  });

  test("ends with its deadline, and sends nothing after it", async () => {
    const { runtime, client, cutOff } = newWorld();
    const ended = watch(call(cutOff().redlock, { deadline: runtime.now() + 15, wait: 60_000 }));
    await runtime.advance(14);
    expect(ended.settled).toBe(false);
    await runtime.advance(200);
    expect([QuorumError, LockHeldError].some((type) => ended.error instanceof type)).toBe(true);
    const own = client();
    const late = watch(call(own.redlock, { deadline: runtime.now() }));
    await runtime.advance(1_000);
    expect(late.error).toBeInstanceOf(RangeError);
    expect(total(own)).toBe(0);
  });
});
