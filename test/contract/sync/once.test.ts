import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type OnceContext, once } from "../../../src/sync/index.ts";
import { eachInTurns } from "../../support/in-turns.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import { paced } from "../../support/pace.ts";
import { allArrived, type OpenStore } from "../../support/stores.ts";
import { until } from "../../support/until.ts";
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
});
