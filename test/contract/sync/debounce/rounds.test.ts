import { describe, expect, test } from "vitest";
import { type DebounceOptions, type DebounceOutcome, debounce } from "../../../../src/sync/index.ts";
import { type VirtualClient, watch } from "../../../support/virtual-client.ts";
import { newWorld, type SyncWorld, sentBy } from "../../../support/virtual-sync.ts";

// The calls of a burst in virtual time: which one runs, when, and what stays of the others.

const start = 1_700_000_000_000;
const unreachable = () => expect.unreachable("it must not run");

const call = (
  { redlock }: VirtualClient,
  options: Partial<DebounceOptions> = {},
  routine: () => unknown = () => "ran",
) => watch<DebounceOutcome<unknown>>(debounce(redlock, "n", { window: 100, ...options }, routine));

const ran = { settled: true, value: { ran: true, value: "ran" } };
const superseded = { settled: true, value: { ran: false } };

/** By endpoint: the sequence number of the last call, without its token. */
const sequencesIn = ({ each }: SyncWorld) =>
  each("HGET", "debounce", "n", "g").map((text) => (text === null ? null : String(text).slice(0, 18)));
const sequence = (number: number) => `g${String(number).padStart(16, "0")}t`;
const nowhere = [null, null, null];

describe("a lone call", () => {
  test("runs when its window is over, with two requests to each endpoint; and so does the next", async () => {
    const world = newWorld();
    const own = world.client();
    for (let turn = 1; turn <= 2; turn += 1) {
      const alone = call(own);
      await world.runtime.advance(99);
      expect([alone.settled, sentBy(own)]).toEqual([false, new Array(3).fill(2 * turn - 1)]);
      await world.runtime.advance(1);
      expect([alone, sentBy(own)]).toEqual([ran, new Array(3).fill(2 * turn)]);
    }
    expect(world.runtime.pending).toBe(0);
  });

  test("is announced with its clock's time, for its window and the ttl", async () => {
    const world = newWorld();
    world.runtime.wallOffset = 0.75;
    call(world.client());
    await world.runtime.advance(0);
    expect(sequencesIn(world)).toEqual(new Array(3).fill(sequence(start)));
    expect(world.each("PTTL", "debounce", "n")).toEqual([10_100, 10_100, 10_100]);
    call(world.client({ ttl: 3_000 }), { window: 50 });
    await world.runtime.advance(0);
    // It shortens nothing.
    expect(world.each("PTTL", "debounce", "n")).toEqual([10_100, 10_100, 10_100]);
    call(world.client(), { window: 20_000, ttl: 500 });
    await world.runtime.advance(0);
    expect(world.each("PTTL", "debounce", "n")).toEqual([20_500, 20_500, 20_500]);
  });

  test("fails with its routine, and returns what that returns", async () => {
    const world = newWorld();
    const failed = call(world.client(), {}, () => Promise.reject(new Error("no")));
    await world.runtime.advance(100);
    expect(failed.error).toEqual(new Error("no"));
    // It has run: its announcement stays.
    expect(sequencesIn(world)).toEqual(new Array(3).fill(sequence(start)));
  });
});

describe("of a burst", () => {
  test("the last call runs, when its own window is over", async () => {
    const world = newWorld();
    const calls = [];
    for (let index = 0; index < 4; index += 1) {
      calls.push(call(world.client(), {}, index === 3 ? undefined : unreachable));
      await world.runtime.advance(60);
    }
    // The last one began at 180 ms.
    expect(calls.map(({ settled }) => settled)).toEqual([true, true, true, false]);
    await world.runtime.advance(39);
    expect(calls[3]!.settled).toBe(false);
    await world.runtime.advance(1);
    expect(calls).toEqual([superseded, superseded, superseded, ran]);
  });
});

describe("an abort", () => {
  test("during the window ends the call, and the one before it runs", async () => {
    const world = newWorld();
    const before = call(world.client());
    await world.runtime.advance(50);
    const caller = new AbortController();
    const own = world.client();
    const last = call(own, { signal: caller.signal }, unreachable);
    await world.runtime.advance(30);
    caller.abort(new Error("enough"));
    await world.runtime.advance(0);
    expect([last.error, sequencesIn(world)]).toEqual([caller.signal.reason, nowhere]);
    await world.runtime.advance(20);
    expect(before).toEqual(ran);
    await world.runtime.advance(500);
    expect(sentBy(own)).toEqual([2, 2, 2]);
  });
});

test("each request costs as much as is documented", async () => {
  const { runtime, client, endpoints } = newWorld({ count: 1, dialect: "upstash" });
  const first = call(client(), {}, unreachable);
  await runtime.advance(50);
  call(client());
  await runtime.advance(100);
  expect(first).toEqual(superseded);
  // The first one's second announcement is refused.
  expect(endpoints[0]!.log.map(({ billed }) => billed)).toEqual([6, 6, 2, 3]);
});
