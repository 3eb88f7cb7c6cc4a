import { expect, test } from "vitest";
import { type DebounceOptions, type DebounceOutcome, debounce } from "../../../../src/sync/index.ts";
import { type VirtualClient, watch } from "../../../support/virtual-client.ts";
import { newWorld, sentBy } from "../../../support/virtual-sync.ts";
import { unreachable } from "../every-call.ts";

// The calls of a burst in virtual time: which one runs, when, and what stays of the others.

const call = (
  { redlock }: VirtualClient,
  options: Partial<DebounceOptions> = {},
  routine: () => unknown = () => "ran",
) => watch<DebounceOutcome<unknown>>(debounce(redlock, "n", { window: 100, ...options }, routine));

const ran = { settled: true, value: { ran: true, value: "ran" } };
const superseded = { settled: true, value: { ran: false } };

test("a lone call runs when its window is over, with two requests to each endpoint; and so does the next", async () => {
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

test("of a burst the last call runs, when its own window is over", async () => {
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

test("an abort during the window ends the call, and the one before it runs", async () => {
  const world = newWorld();
  const before = call(world.client());
  await world.runtime.advance(50);
  const caller = new AbortController();
  const own = world.client();
  const last = call(own, { signal: caller.signal }, unreachable);
  await world.runtime.advance(30);
  caller.abort(new Error("enough"));
  await world.runtime.advance(0);
  expect([last.error, world.each("EXISTS", "debounce", "n")]).toEqual([caller.signal.reason, [0, 0, 0]]);
  await world.runtime.advance(20);
  expect(before).toEqual(ran);
  await world.runtime.advance(500);
  expect(sentBy(own)).toEqual([2, 2, 2]);
});
