import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Endpoint, LockHeldError, QuorumError, Redlock, type Runtime } from "../../../src/index.ts";
import { type OnceContext, once } from "../../../src/sync/index.ts";
import { memoryEndpoint } from "../../../src/testing/index.ts";
import { eachInTurns } from "../../support/in-turns.ts";
import { gate } from "../../support/link.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import { paced } from "../../support/pace.ts";
import { steppingRuntime } from "../../support/stepping-runtime.ts";
import { allArrived, type OpenStore } from "../../support/stores.ts";
import { until } from "../../support/until.ts";
import { schedule } from "./schedule.ts";
import { onEach, stores, type Visitor, visitor } from "./stand.ts";

const keyFor = (name: string) => `redlock:once:{${name}}`;
const unreachable = () => expect.unreachable("it must not run");

eachInTurns(stores([1, 2, 3, 5], [3]))("once on $title", ({ open, count }) => {
  let store: OpenStore;
  let first: Visitor;
  let second: Visitor;

  beforeAll(async () => {
    store = await open();
    first = visitor(store);
    second = visitor(store);
  });
  afterAll(() => store.close());

  test("one of many replicas that call at the same moment runs", async () => {
    const name = newResource("nightly");
    const runs: OnceContext[] = [];
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

  test.each([1_000, 15_000])(
    "replicas that call one after another within every: %d share a run",
    async (idle) => {
      const every = paced(idle);
      const name = newResource("nightly");
      const called = Date.now();
      let begun = 0;
      const replicas = [0, 0.1, 0.2].map(async (share) => {
        await delay(share * Math.min(every, 1_000));
        const { redlock } = visitor(store, { backoff: {} });
        return once(redlock, name, { every }, () => {
          begun ||= Date.now();
        });
      });
      const outcomes = await Promise.all(replicas);
      // On a busy machine a late call may belong to the next interval.
      if (begun - called < 0.7 * every) expect(outcomes.filter(({ ran }) => ran).length).toBe(1);
      for (const outcome of outcomes) expect(outcome.ran || outcome.retryAfter > 0).toBe(true);
    },
  );

  test("a run that came and went while a call waited counts for that call", async () => {
    const name = newResource("nightly");
    const slow = visitor(store);
    const held = gate();
    await onEach(store, "SET", keyFor(name), `t${"1".repeat(32)}`, "PX", "60000");
    for (const link of slow.links) {
      link.fate = () => (link.sent.length > 1 ? { before: () => held.passed } : "delivered");
    }
    // It finds a claim and waits; its next request is under way for longer than the whole interval.
    const waiting = once(slow.redlock, name, { every: 1_200, ttl: 1_000, wait: 60_000 }, unreachable);
    await until(() => slow.links.every(({ sent }) => sent.length > 1), "the next request");
    await onEach(store, "DEL", keyFor(name));
    expect((await once(first.redlock, name, { every: 1_200, ttl: 1_000 }, () => 1)).ran).toBe(true);
    await until(async () => (await onEach(store, "EXISTS", keyFor(name))).every((there) => there === 0));
    held.open();
    expect(await waiting).toEqual({ ran: false, retryAfter: expect.any(Number) });
  });

  test.runIf(count > 2)(
    "a run that only a minority knows of has not begun, and does not refuse others",
    async () => {
      const name = newResource("nightly");
      const dying = visitor(store, { timeout: paced(300) });
      dying.links.forEach((link, index) => {
        link.fate = (command) => (command.includes("acquire") || index === 0 ? "delivered" : "lost");
      });
      const died = rejection(once(dying.redlock, name, { every: 60_000, ttl: paced(900) }, unreachable));
      await until(async () => String((await onEach(store, "GET", keyFor(name)))[0]).startsWith("r"), "a run");
      for (const link of dying.links) link.fate = () => "lost";
      expect(await once(second.redlock, name, { every: 60_000 }, () => "taken over")).toEqual({
        ran: true,
        value: "taken over",
      });
      expect((await died) as Error).toHaveProperty("code", expect.stringMatching(/NO_QUORUM|LOCK_LOST/));
    },
  );

  test("repeated requests make one run, of one interval", async () => {
    const name = newResource("nightly");
    const twice = visitor(store);
    for (const link of twice.links) link.fate = () => "twice";
    const { fence } = (
      (await once(twice.redlock, name, { every: 60_000 }, (turn) => turn)) as { value: OnceContext }
    ).value;
    expect(fence).toBeGreaterThan(0);
    expect((await once(twice.redlock, name, { every: 60_000 }, unreachable)).ran).toBe(false);
    expect((await once(second.redlock, name, { every: 60_000 }, unreachable)).ran).toBe(false);
  });

  test("an interval begins with the run, and lasts as long even if the run fails", async () => {
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
    const run = ({ fence }: OnceContext) => void fences.push(fence);
    const every = paced(500);
    const begun = Date.now();
    await once(first.redlock, name, { every }, run);
    await until(async () => (await once(second.redlock, name, { every, wait: 0 }, run)).ran);
    expect(Date.now() - begun).toBeGreaterThanOrEqual(every - 2);
    expect(fences.length).toBe(2);
    expect(fences[1]).toBeGreaterThan(fences[0]!);
  });

  test("the validity of a run ends before another run may begin, and its signal aborts", async () => {
    const name = newResource("nightly");
    const every = paced(1_200);
    const begun = gate<OnceContext>();
    const long = once(first.redlock, name, { every }, async (turn) => {
      begun.open(turn);
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    });
    const { remaining } = await begun.passed;
    let next: unknown;
    await until(async () => {
      // Both replicas share a process: after a pause of it, the signal's timer may come after the other run.
      const outcome = await once(second.redlock, name, { every }, () => remaining() <= 0);
      next = outcome;
      return outcome.ran;
    });
    expect(next).toEqual({ ran: true, value: true });
    await long;
  });

  test("a claim whose process dies before its run keeps others out for its ttl only", async () => {
    const name = newResource("nightly");
    const dying = visitor(store, { timeout: paced(300) });
    const ttl = paced(900);
    let acquires = 0;
    for (const link of dying.links) {
      link.fate = (command) => (command.includes("acquire") && ++acquires > 0 ? "delivered" : "lost");
    }
    const died = rejection(once(dying.redlock, name, { every: 60_000, ttl }, unreachable));
    await until(
      () => acquires >= count && dying.links.every(({ sent }) => sent.length > 1),
      "a confirmation",
    );
    expect(Math.max(...((await onEach(store, "PTTL", keyFor(name))) as number[]))).toBeLessThanOrEqual(ttl);
    const next = await once(second.redlock, name, { every: 60_000, wait: 20_000 }, () => "taken over");
    expect(next).toEqual({ ran: true, value: "taken over" });
    expect((await died) as Error).toHaveProperty("code", expect.stringMatching(/NO_QUORUM|LOCK_LOST/));
  });

  test("a confirmation whose answer was lost is sent again, and then the routine runs", async () => {
    const name = newResource("nightly");
    const shaky = visitor(store);
    for (const link of shaky.links) {
      let lost = 0;
      // `extend` by script, or by a native command.
      link.fate = ([operation, ...rest]) =>
        (rest.includes("extend") || operation === "SET") && ++lost === 1 ? "reply lost" : "delivered";
    }
    const outcome = await once(shaky.redlock, name, { every: 60_000, ttl: 10_000 }, () => "ran");
    expect(outcome).toEqual({ ran: true, value: "ran" });
  });

  test("a run costs two requests and ten commands, a refusal one and three", async () => {
    const { redlock, links } = visitor(store);
    const cost = () => {
      const costs = store.endpoints.map((_, index) => store.cost(index));
      return [costs.map(({ requests }) => requests), costs.map(({ billed }) => billed)].map((all) =>
        all.reduce((sum, one) => sum + one, 0),
      );
    };
    const costOf = async (work: () => Promise<unknown>) => {
      const before = cost();
      await work();
      await allArrived(links);
      return cost().map((sum, index) => (sum - before[index]!) / count);
    };
    // So that the endpoints know the script by its hash.
    await costOf(() => once(redlock, newResource("nightly"), { every: 60_000 }, () => 1));
    const name = newResource("nightly");
    expect(await costOf(() => once(redlock, name, { every: 60_000 }, () => 1))).toEqual([2, 10]);
    expect(await costOf(() => once(redlock, name, { every: 60_000 }, unreachable))).toEqual([1, 3]);
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

test("a coarse clock does not delay a claim", async () => {
  for (let every = 40; every < 100; every += 7) {
    const { runtime: virtual, run } = schedule(every, 1);
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
    const error = await run(rejection(once(redlock, "nightly", { every }, unreachable)));
    expect((error as QuorumError).code).toMatch(/NO_QUORUM|LOCK_LOST/);
  }
});

test("no timer is pending once the routine has ended", async () => {
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
    ["no every", () => once(redlock, "n", wrong({}), unreachable), TypeError, /every.*missing/],
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
    const endpoint = memoryEndpoint();
    const lone = new Redlock({ endpoints: [endpoint] });
    const { engine } = endpoint;
    engine.execute(["SET", keyFor("n"), `t${"1".repeat(32)}`, "PX", 60_000]);
    const controller = new AbortController();
    const { signal } = controller;
    const call = rejection(once(lone, "n", { every: 120_000, ttl: 100_000, signal }, unreachable));
    await until(() => endpoint.log.length > 1, "a refusal");
    controller.abort(new Error("enough"));
    expect(await call).toEqual(new Error("enough"));
    expect(await call).not.toBeInstanceOf(LockHeldError);
  });
});
