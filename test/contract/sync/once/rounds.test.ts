import { describe, expect, test } from "vitest";
import { LockLostError, QuorumError } from "../../../../src/index.ts";
import { type OnceContext, type OnceOptions, type OnceOutcome, once } from "../../../../src/sync/index.ts";
import { type VirtualClient, watch } from "../../../support/virtual-client.ts";
import { newWorld, type SyncWorld, sentBy } from "../../../support/virtual-sync.ts";
import { unreachable } from "../every-call.ts";

// The intervals of `once` in virtual time: who runs, when, how long others are kept out, and how a claim becomes a run.

const day = 86_400_000;
const start = 1_700_000_000_000;
/** The value of another replica. */
const stranger = `t${"12".repeat(8)}${"34".repeat(8)}`;

/** Calls it with a routine that returns its context. */
const call = (
  { redlock }: VirtualClient,
  options: Partial<OnceOptions> = {},
  routine: (context: OnceContext) => unknown = (context) => context,
) => watch<OnceOutcome<unknown>>(once(redlock, "n", { every: 60_000, ...options }, routine));

const refused = (retryAfter: number) => ({ settled: true, value: { ran: false, retryAfter } });

/** Sends the same claim as a replica whose process dies then. */
function claim({ each }: SyncWorld, ttl: number): void {
  each("SET", "once", "n", stranger, "PX", ttl);
}
const isConfirmation = (command: readonly unknown[]) => command.includes("extend");

describe("a run", () => {
  test("begins an interval of `every` ms, in which nobody else runs", async () => {
    const { runtime, client, atOnce, each } = newWorld();
    const outcome = await atOnce(once(client().redlock, "n", { every: 60_000 }, (context) => context));
    expect(outcome.ran).toBe(true);
    expect(each("PTTL", "once", "n")).toEqual([60_000, 60_000, 60_000]);
    for (const passed of [0, 1, 30_000, 29_998]) {
      await runtime.advance(passed);
      const other = call(client());
      await runtime.advance(0);
      expect(other).toEqual(refused(60_000 + start - runtime.now()));
    }
    await runtime.advance(1);
    const next = call(client());
    await runtime.advance(0);
    expect(next.value!.ran).toBe(true);
  });

  test("has what remains of the interval as its validity, even if the client extends its locks", async () => {
    const { runtime, client } = newWorld();
    let context: OnceContext | undefined;
    const own = client({ autoExtend: true });
    const long = call(own, { every: 1_000 }, (given) => {
      context = given;
      return new Promise((resolve) => given.signal.addEventListener("abort", () => resolve("aborted")));
    });
    await runtime.advance(0);
    expect(context!.remaining()).toBe(1_000 - 12);
    await runtime.advance(987);
    expect([context!.signal.aborted, context!.remaining(), long.settled]).toEqual([false, 1, false]);
    await runtime.advance(1);
    expect(context!.signal.reason).toBeInstanceOf(LockLostError);
    expect([long.value, sentBy(own)]).toEqual([{ ran: true, value: "aborted" }, [2, 2, 2]]);
  });

  test("that fails has begun all the same", async () => {
    const { runtime, client } = newWorld();
    const failed = call(client(), {}, () => Promise.reject(new Error("no paper")));
    await runtime.advance(0);
    expect([failed.error, runtime.pending]).toEqual([new Error("no paper"), 0]);
    const next = call(client(), {}, unreachable);
    await runtime.advance(0);
    expect(next).toEqual(refused(60_000));
  });
});

describe("the fence", () => {
  const fenceOf = async (world: SyncWorld, client = world.client()) => {
    const { value } = await world
      .atOnce(once(client.redlock, "n", { every: 1_000 }, ({ fence }) => fence))
      .then((outcome) => (outcome.ran ? outcome : { value: 0 }));
    return value;
  };

  test("is the time, and grows with each run, also where clocks go back", async () => {
    const world = newWorld();
    expect(await fenceOf(world)).toBe(start);
    expect(world.each("GET", "once-fence", "n")).toEqual(new Array(3).fill(String(start)));
    await world.runtime.advance(1_000);
    expect(await fenceOf(world)).toBe(start + 1_000);
    world.each("DEL", "once", "n");
    world.each("DEL", "once-end", "n");
    // As if a client whose clock is ahead had run.
    world.at([1], "SET", "once-fence", "n", start + 5_000);
    expect(await fenceOf(world)).toBe(start + 5_001);
  });

  test("and the end of the interval are remembered for a day after it", async () => {
    const world = newWorld();
    await fenceOf(world);
    expect(world.ttls()).toEqual({
      "redlock:once-end:{n}": day + 1_000,
      "redlock:once-fence:{n}": day + 1_000,
      "redlock:once:{n}": 1_000,
    });
  });
});

describe("a claim", () => {
  test("of a replica that died keeps others out for its ttl only, and is taken over then", async () => {
    const world = newWorld();
    claim(world, 405);
    const next = call(world.client(), {}, () => "taken over");
    await world.runtime.advance(404);
    expect(next.settled).toBe(false);
    await world.runtime.advance(1);
    expect(next.value).toEqual({ ran: true, value: "taken over" });
  });

  test("lasts for the client's ttl, or for half of a shorter interval", async () => {
    for (const [every, given, ttl, defaults] of [
      [60_000, {}, 10_000, {}],
      [15_001, {}, 7_500, {}],
      [20, {}, 10, {}],
      [60_000, { ttl: 20_000 }, 20_000, {}],
      [60_000, { ttl: 60_000 }, 60_000, {}],
      [60_000, {}, 3_000, { ttl: 3_000 }],
    ] as const) {
      const { runtime, client, each } = newWorld();
      const own = client(defaults);
      for (const link of own.links) link.fate = (command) => (isConfirmation(command) ? "lost" : "delivered");
      call(own, { every, ...given }, unreachable);
      await runtime.advance(0);
      expect(each("PTTL", "once", "n")).toEqual([ttl, ttl, ttl]);
    }
  });
});

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

test("the last part of a ms of a claim is not retried: timers of whole ms would not let it pass", async () => {
  const { runtime, client } = newWorld();
  const { timer } = runtime;
  runtime.timer = (ms, callback) => timer(Math.floor(ms), callback);
  const own = client();
  for (const link of own.links) link.fate = (command) => (isConfirmation(command) ? "refused" : "delivered");
  // Its validity is 47.5 ms.
  const lost = call(own, { ttl: 50 }, unreachable);
  await runtime.advance(50);
  expect(lost.error).toBeInstanceOf(QuorumError);
});

test.each([
  ["once-end", ["SET", "garbage"]],
  ["once-fence", ["SET", "garbage"]],
  ["once-end", ["HSET", "f", "x"]],
  ["once-fence", ["HSET", "f", "x"]],
] as const)(
  "foreign data at %s is an error that names the key and the remedy: %j",
  async (kind, [command, ...words]) => {
    const { runtime, client, each } = newWorld();
    each(command, kind, "n", ...words);
    const failed = call(client(), { ttl: 100 }, unreachable);
    await runtime.advance(500);
    expect(failed.error).toBeInstanceOf(QuorumError);
    expect(String(failed.error)).toContain(`redlock:${kind}:{n}`);
    expect(String(failed.error)).toContain("has foreign data: rename or delete it");
    expect(each("EXISTS", "once", "n")).toEqual([0, 0, 0]);
  },
);
