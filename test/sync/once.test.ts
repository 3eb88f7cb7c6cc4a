import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LockHeldError, QuorumError, Redlock } from "../../src/index.ts";
import { once, type Turn } from "../../src/sync/index.ts";
import { memoryEndpoint } from "../../src/testing/index.ts";
import { newResource } from "../support/local-endpoints.ts";
import { steppingRuntime } from "../support/stepping-runtime.ts";
import { allArrived, type OpenStore } from "../support/stores.ts";
import { rejection, until } from "../support/until.ts";
import { onEach, stores, type Visitor, visitor } from "./stand.ts";

const keyFor = (name: string) => `redlock:once:lock:{${name}}`;
const unreachable = () => expect.unreachable("it must not run");

describe.each(stores([1, 2, 3, 5], [3]))("once on $title", ({ open, count }) => {
  let store: OpenStore;
  let first: Visitor;
  let second: Visitor;

  beforeAll(async () => {
    store = await open();
    first = visitor(store);
    second = visitor(store);
  });
  afterAll(() => store.close());

  test("of many replicas that come at the same moment, one runs", async () => {
    const name = newResource("nightly");
    const runs: Turn[] = [];
    const replicas = Array.from({ length: 5 }, (_, index) =>
      once(visitor(store).redlock, name, { every: 100_000 }, (turn) => {
        runs.push(turn);
        return index;
      }),
    );
    const outcomes = await Promise.all(replicas);
    expect(runs.length).toBe(1);
    const values = outcomes.flatMap((outcome) => (outcome.ran ? [outcome.value] : []));
    expect(values).toEqual([outcomes.findIndex(({ ran }) => ran)]);
    for (const outcome of outcomes) {
      if (outcome.ran) continue;
      expect(outcome.retryAfter).toBeGreaterThan(50_000);
      expect(outcome.retryAfter).toBeLessThanOrEqual(100_000);
    }
  });

  test("an interval begins with the run, and lasts as long whatever becomes of it", async () => {
    const name = newResource("nightly");
    let during = 0;
    const failed = once(first.redlock, name, { every: 60_000 }, async ({ remaining, signal, fence }) => {
      expect(remaining()).toBeGreaterThan(50_000);
      expect(remaining()).toBeLessThan(60_000);
      expect(signal.aborted).toBe(false);
      expect(fence).toBeGreaterThan(0);
      expect((await once(second.redlock, name, { every: 60_000 }, unreachable)).ran).toBe(false);
      during += 1;
      throw new Error("no paper");
    });
    expect(await rejection(failed)).toEqual(new Error("no paper"));
    expect(during).toBe(1);
    for (const { redlock } of [first, second]) {
      expect((await once(redlock, name, { every: 60_000 }, unreachable)).ran).toBe(false);
    }
    await allArrived(first.links);
    const ttls = (await onEach(store, "PTTL", keyFor(name))) as number[];
    expect(ttls.filter((ms) => ms > 50_000 && ms <= 60_000).length).toBe(count);
  });

  test("the next interval has one run again, with a larger fence", async () => {
    const name = newResource("nightly");
    const fences: number[] = [];
    const run = ({ fence }: Turn) => void fences.push(fence);
    const begun = Date.now();
    await once(first.redlock, name, { every: 500 }, run);
    await until(async () => (await once(second.redlock, name, { every: 500, wait: 0 }, run)).ran);
    expect(Date.now() - begun).toBeGreaterThanOrEqual(498);
    expect(fences.length).toBe(2);
    expect(fences[1]).toBeGreaterThan(fences[0]!);
  });

  test("the signal aborts before another run may begin", async () => {
    const name = newResource("nightly");
    let aborted = false;
    const long = once(first.redlock, name, { every: 1_200 }, async ({ signal }) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      aborted = true;
    });
    // Waiting is of use here: the interval ends sooner than the waiting.
    const next = await once(second.redlock, name, { every: 1_200, wait: 20_000 }, () => aborted);
    expect(next).toEqual({ ran: true, value: true });
    await long;
  });

  test("a claim whose process dies before it begins keeps others away for its ttl only", async () => {
    const name = newResource("nightly");
    const dying = visitor(store, { timeout: 300 });
    let takes = 0;
    for (const link of dying.links) {
      link.fate = (command) => (command.includes("take") && ++takes > 0 ? "delivered" : "lost");
    }
    const died = rejection(once(dying.redlock, name, { every: 60_000, ttl: 900 }, unreachable));
    await until(() => takes >= count && dying.links.every(({ sent }) => sent.length > 1), "a confirmation");
    expect(Math.max(...((await onEach(store, "PTTL", keyFor(name))) as number[]))).toBeLessThanOrEqual(900);
    const next = await once(second.redlock, name, { every: 60_000, wait: 20_000 }, () => "taken over");
    expect(next).toEqual({ ran: true, value: "taken over" });
    expect((await died) as Error).toHaveProperty("code", expect.stringMatching(/NO_QUORUM|LOCK_LOST/));
  });

  test("a confirmation whose answer was lost is asked for again, and then the routine runs", async () => {
    const name = newResource("nightly");
    const shaky = visitor(store);
    for (const link of shaky.links) {
      let lost = 0;
      // `renew` by script, or as a command of its own.
      link.fate = ([operation, ...rest]) =>
        (rest.includes("renew") || operation === "SET") && ++lost === 1 ? "reply lost" : "delivered";
    }
    const outcome = await once(shaky.redlock, name, { every: 60_000, ttl: 10_000 }, () => "ran");
    expect(outcome).toEqual({ ran: true, value: "ran" });
  });

  test("an outage is a QuorumError, and nothing runs", async () => {
    const name = newResource("nightly");
    const cut = visitor(store);
    for (const link of cut.links) link.fate = () => "refused";
    const error = await rejection(once(cut.redlock, name, { every: 60_000, wait: 20 }, unreachable));
    expect(error).toBeInstanceOf(QuorumError);
    expect((await once(first.redlock, name, { every: 60_000 }, () => 1)).ran).toBe(true);
  });
});

test("nothing watches the clock once the routine has ended", async () => {
  const runtime = steppingRuntime();
  const redlock = new Redlock({ endpoints: [memoryEndpoint({ runtime })], runtime });
  const signals: AbortSignal[] = [];
  await once(redlock, "nightly", { every: 60_000 }, ({ signal }) => {
    signals.push(signal);
    expect(runtime.pending).toBeGreaterThan(0);
  });
  expect(runtime.pending).toBe(0);
  expect(signals[0]!.aborted).toBe(false);
});

describe("arguments", () => {
  const endpoint = memoryEndpoint();
  const redlock = new Redlock({ endpoints: [endpoint] });
  const wrong = (value: unknown) => value as never;
  const every = 1_000;

  test.each<[string, () => Promise<unknown>, typeof RangeError | typeof TypeError, RegExp]>([
    ["no every", () => once(redlock, "n", wrong({}), unreachable), TypeError, /every.*undefined/],
    ["every 19", () => once(redlock, "n", { every: 19 }, unreachable), RangeError, /every.*19/],
    ["every 25 days", () => once(redlock, "n", { every: 25 * 86_400_000 }, unreachable), RangeError, /every/],
    ["ttl over every", () => once(redlock, "n", { every, ttl: 1_001 }, unreachable), RangeError, /1001/],
    ["no name", () => once(redlock, "", { every }, unreachable), RangeError, /0/],
    ["no routine", () => once(redlock, "n", { every }, wrong(undefined)), TypeError, /routine/],
    ["wait −1", () => once(redlock, "n", { every, wait: -1 }, unreachable), RangeError, /wait/],
    ["signal {}", () => once(redlock, "n", { every, signal: wrong({}) }, unreachable), TypeError, /signal/],
  ])("%s is refused before anything is sent", async (_what, call, type, message) => {
    const error = await rejection(call());
    expect(error).toBeInstanceOf(type);
    expect((error as Error).message).toMatch(message);
    expect(endpoint.log).toEqual([]);
  });

  test("an abort ends the waiting with its reason", async () => {
    const lone = new Redlock({ endpoints: [memoryEndpoint()] });
    await lone.acquire("n", { prefix: "redlock:once", ttl: 60_000 });
    const controller = new AbortController();
    const { signal } = controller;
    const call = rejection(once(lone, "n", { every: 120_000, ttl: 100_000, signal }, unreachable));
    controller.abort(new Error("enough"));
    expect(await call).toEqual(new Error("enough"));
    expect(await call).not.toBeInstanceOf(LockHeldError);
  });
});
