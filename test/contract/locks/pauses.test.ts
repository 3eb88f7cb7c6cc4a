import { describe, expect, test } from "vitest";
import type { LockOptions } from "../../../src/index.ts";
import { virtualWorld, watch } from "../../support/virtual-client.ts";

// The pauses between rounds, by when their requests are sent, in virtual time: requests take no time.

type Given = LockOptions & { readonly drawn?: number };

/** Waits for a lock that is held, and notes when the rounds begin; it ends after `ms`. */
async function roundsOf({ drawn = 0.5, ...options }: Given, ms: number) {
  const { runtime, client, put } = virtualWorld({ count: 1 });
  runtime.random = () => drawn;
  const { redlock, links } = client({ wait: 60_000, ...options });
  put("r", [0], "somebody-else", 3_600_000);
  const times: number[] = [];
  links[0]!.fate = () => {
    times.push(runtime.elapsed);
    return "delivered";
  };
  const caller = new AbortController();
  const call = watch(redlock.acquire("r", { signal: caller.signal }));
  await runtime.advance(ms);
  caller.abort();
  await runtime.advance(0);
  return { times, call };
}

const pausesIn = (times: readonly number[]) => times.slice(1).map((time, index) => time - times[index]!);

describe("the pause between two rounds", () => {
  test.each<[answer: unknown, second: number]>([
    [7, 7],
    [Number.NaN, 0],
    [Infinity, 25],
  ])("of a backoff that returns %s is %d ms, within a wait of 25 ms", async (answer, second) => {
    let asked = 0;
    // A pause each, so that those of no length end.
    const backoff = () => (asked++ === 0 ? (answer as number) : 1_000);
    const { times } = await roundsOf({ backoff, wait: 25 }, 30);
    expect(times[1]).toBe(second);
    expect(times.at(-1)).toBe(25);
  });

  test("is 25 ms at least where nothing is said, and grows while others hold the lock", async () => {
    const { times } = await roundsOf({ backoff: undefined }, 20_000);
    const pauses = pausesIn(times);
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(25);
    expect(pauses.at(-2)!).toBeGreaterThan(100);
    // As many as the servers can bear, and not so few that a free lock is left for long.
    expect(times.length).toBeGreaterThan(15);
    expect(times.length).toBeLessThan(150);
  });
});

test("a wait ends with a last round, and none follows where nothing is to be waited for", async () => {
  const ended = await roundsOf({ backoff: () => 10, wait: 25 }, 25);
  expect(ended.times).toEqual([0, 10, 20, 25]);
  expect(ended.call.error).toMatchObject({ code: "LOCK_HELD" });
  expect((await roundsOf({ backoff: () => 10, wait: 0 }, 100)).times).toEqual([0]);
});

test("a backoff that throws ends the call with its error, and is not asked where no round follows", async () => {
  const error = new Error("no backoff");
  const backoff = () => {
    throw error;
  };
  const { times, call } = await roundsOf({ backoff }, 0);
  expect([call.error, times]).toEqual([error, [0]]);
  expect((await roundsOf({ backoff, wait: 0 }, 0)).call.error).toMatchObject({ code: "LOCK_HELD" });
});
