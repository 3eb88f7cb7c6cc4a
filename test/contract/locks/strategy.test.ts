import { describe, expect, test } from "vitest";
import { LockHeldError, QuorumError } from "../../../src/index.ts";
import {
  acquireWithRetry,
  type FailedRound,
  type LockStrategy,
  type NextStep,
} from "../../../src/lock/acquire.ts";
import { Lock } from "../../../src/lock/lock.ts";
import { clientStateOf } from "../../../src/lock/options.ts";
import { acquire, release } from "../../../src/redis/cell.ts";
import { virtualWorld, watch } from "../../support/virtual-client.ts";

// How a synchronizer changes the rounds of an acquire, in virtual time.

type Decision = NextStep | undefined;

const again: Decision = { type: "retry" };

/** A world in which "r" is held by others, and an acquire whose decisions the test makes. */
function acquiring(
  decide: (failed: FailedRound, count: number) => Decision,
  strategy: Partial<LockStrategy> = {},
) {
  const world = virtualWorld();
  const { redlock, links, events } = world.client({ wait: 500, ttl: 10_000 });
  const failures: FailedRound[] = [];
  const start = (options: object = {}) =>
    watch(
      acquireWithRetry(clientStateOf(redlock).settings, ["r"], options, {
        afterFailedRound(_round, failed) {
          failures.push(failed);
          return decide(failed, failures.length);
        },
        ...strategy,
      }),
    );
  const rounds = () => links[0]!.sent.filter(([name]) => name === "SET").length;
  return { ...world, links, events, failures, start, rounds };
}

describe("after a failed round", () => {
  test("an error ends the call at once, with a round that reports no retry", async () => {
    const error = new QuorumError("own", ["r"], []);
    const { runtime, put, start, events, rounds } = acquiring(() => ({ type: "fail", error }));
    put("r", [0, 1, 2]);
    const call = start();
    await runtime.advance(0);
    expect(call.value).toBe(error);
    expect(rounds()).toBe(1);
    expect(events).toMatchObject([
      { type: "acquiring" },
      { type: "contended", retryIn: undefined, rounds: 1 },
      { type: "notAcquired", rounds: 1, error },
    ]);
  });

  test("`retry` sends another round at once, also when the waiting is over", async () => {
    const error = new QuorumError("own", ["r"], []);
    const { runtime, put, start, failures, events } = acquiring((_, count) =>
      count < 4 ? again : { type: "fail", error },
    );
    put("r", [0, 1, 2]);
    const call = start({});
    await runtime.advance(0);
    expect(call.value).toBe(error);
    expect(failures.map(({ waited }) => waited)).toEqual([0, 0, 0, 0]);
    const retries = events.flatMap((event) => (event.type === "contended" ? [event.retryIn] : []));
    expect(retries).toEqual([0, 0, 0, undefined]);

    const late = acquiring((_, count) => {
      if (count === 1) return { type: "pause", ms: 600 };
      return count === 2 ? again : { type: "fail", error };
    });
    late.put("r", [0, 1, 2]);
    const end = late.start();
    await late.runtime.advance(500);
    expect(late.failures.map(({ remainingWait }) => remainingWait)).toEqual([500, 0, 0]);
    expect(end.value).toBe(error);
  });

  test("`pause` waits for so many ms, within the waiting", async () => {
    const { runtime, put, start, failures } = acquiring(() => ({ type: "pause", ms: 200 }));
    put("r", [0, 1, 2]);
    const call = start();
    await runtime.advance(499);
    expect(failures.map(({ waited }) => waited)).toEqual([0, 200, 400]);
    expect(call.settled).toBe(false);
    await runtime.advance(1);
    expect(failures.map(({ waited, remainingWait }) => [waited, remainingWait]).at(-1)).toEqual([500, 0]);
    expect(call.value).toBeInstanceOf(LockHeldError);
  });

  test("without a step it pauses as a lock does", async () => {
    const { runtime, put, start, failures } = acquiring(() => undefined);
    put("r", [0, 1, 2]);
    start();
    await runtime.advance(25);
    expect(failures.map(({ waited }) => waited)).toEqual([0, 10, 20]);
  });

  test("the strategy learns whether others hold it, and when it may be free", async () => {
    const held = acquiring(() => undefined);
    held.put("r", [0, 1, 2]);
    held.start({ wait: 0 });
    await held.runtime.advance(0);
    expect(held.failures[0]).toEqual({ held: true, retryAfter: undefined, remainingWait: 500, waited: 0 });

    const failing = acquiring(() => undefined);
    for (const each of failing.links) each.fate = () => "refused";
    failing.start({ deadline: failing.runtime.now() + 300 });
    await failing.runtime.advance(0);
    expect(failing.failures[0]).toMatchObject({ held: false, retryAfter: undefined, remainingWait: 300 });

    const scripted = acquiring(() => undefined, {
      acquire: (call, cell, ttl) => acquire(call, { ...cell, tombstone: "void" }, ttl),
    });
    scripted.put("r", [0, 1, 2], "somebody-else", 70);
    scripted.start();
    await scripted.runtime.advance(0);
    expect(scripted.failures[0]).toMatchObject({ held: true, retryAfter: 70 });
  });
});

describe("a synchronizer's own requests", () => {
  test("acquire the keys that it names anew for each round, and hold those that it was granted", async () => {
    let round = 0;
    const { runtime, put, endpoints, start } = acquiring(() => undefined, {
      keys: () => {
        round += 1;
        return round === 1 ? ["redlock:lock:{r}"] : [`own:${round}`];
      },
      grantedKeys: () => ["own:2"],
    });
    put("r", [0, 1, 2]);
    const call = start();
    await runtime.advance(10);
    const lock = call.value as Lock;
    expect(lock).toBeInstanceOf(Lock);
    const at = (key: string) => endpoints.map(({ engine }) => engine.execute(["GET", key]));
    expect(at("own:2")).toEqual([lock.token, lock.token, lock.token]);
    expect(await lock.release()).toBe(true);
    expect(at("own:2")).toEqual([null, null, null]);
  });

  test("are used for the rollback, the extension and the release, and nothing is restored", async () => {
    const performed: string[] = [];
    const { runtime, put, endpoints, links, start } = acquiring(() => undefined, {
      acquire(call, cell, ttl) {
        performed.push("acquire");
        return acquire(call, cell, ttl);
      },
      release(call, cell, retention) {
        performed.push("release");
        return release(call, cell, retention);
      },
      async extend() {
        performed.push("extend");
        return { outcome: performed.length % 3 === 0 ? "lost" : "granted" };
      },
    });
    put("r", [0, 1], "somebody-else", 5);
    const call = start();
    await runtime.advance(0);
    expect(performed).toEqual(["acquire", "acquire", "acquire", "release"]);
    await runtime.advance(10);
    const lock = call.value as Lock;
    performed.length = 0;
    await lock.extend();
    await runtime.advance(0);
    expect(performed).toEqual(["extend", "extend", "extend"]);
    expect(links.some(({ sent }) => sent.some((command) => command.includes("restore")))).toBe(false);
    expect(await lock.release()).toBe(true);
    expect(performed.slice(3)).toEqual(["release", "release", "release"]);
    expect(endpoints[0]!.engine.execute(["GET", "redlock:lock:{r}"])).toBe(null);
  });
});
