import { describe, expect, test } from "vitest";
import { LockHeldError, QuorumError, type Redlock } from "../../../src/index.ts";
import type { WaitOptions } from "../../../src/sync/index.ts";
import { delays, type VirtualClient, watch } from "../../support/virtual-client.ts";
import { newWorld, sentBy } from "../../support/virtual-sync.ts";
import { everyCall, unreachable } from "./every-call.ts";

// What the calls of locks and of all synchronizers have in common, in virtual time: how they end without a result.

const calls: typeof everyCall = {
  "redlock.acquire": (redlock, options) => redlock.acquire("n", options),
  "redlock.acquire, fenced": (redlock, options: object) =>
    redlock.acquire("n", { fencing: true, ...options }),
  "redlock.using": (redlock, options) => redlock.using("n", options, unreachable),
  ...everyCall,
};

type Options = Pick<WaitOptions, "wait" | "signal" | "deadline">;

/** All endpoints refuse every request; and every command that a client has sent. */
function stage() {
  const world = newWorld();
  const cutOff = (options: Parameters<typeof world.client>[0] = {}) => {
    const own = world.client(options);
    for (const link of own.links) link.fate = () => "refused";
    return own;
  };
  const stored = () => world.endpoints.flatMap((_, index) => Object.keys(world.ttls(index)));
  return { ...world, cutOff, stored };
}

const total = (client: VirtualClient) => sentBy(client).reduce((sum, count) => sum + count, 0);

describe.each(Object.entries(calls))("a call of %s", (name, perform) => {
  const call = (redlock: Redlock, options: Options) => perform(redlock, options as never);

  test("that has aborted already sends nothing", async () => {
    const { runtime, client } = stage();
    const own = client();
    const reasons = [new Error("the caller's own"), "a word", 0];
    const ended = reasons.map((reason) => watch(call(own.redlock, { signal: AbortSignal.abort(reason) })));
    await runtime.advance(1_000);
    expect([ended.map(({ error }) => error), total(own)]).toEqual([reasons, 0]);
  });

  test("ends at once with an abort, while answers or the end of a pause are awaited", async () => {
    const { runtime, client, cutOff, stored } = stage();
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
      const { runtime, client } = stage();
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
    const { runtime, cutOff } = stage();
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
    const { runtime, client } = stage();
    const own = client();
    for (const link of own.links) link.fate = () => delays(runtime).slow(50);
    const ended = watch(call(own.redlock, { deadline: runtime.now() + 20 }));
    await runtime.advance(1_000);
    // An arrival counts all the same.
    if (!/Latch|Barrier/.test(name)) expect(ended.error).toBeInstanceOf(QuorumError);
    else expect(ended.error).not.toBeInstanceOf(RangeError);
  });

  test("ends with its deadline, and sends nothing after it", async () => {
    const { runtime, client, cutOff } = stage();
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
