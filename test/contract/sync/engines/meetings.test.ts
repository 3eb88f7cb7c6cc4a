import { afterAll, beforeAll, expect, test } from "vitest";
import { keyOf } from "../../../../src/redis/keys.ts";
import {
  CountDownLatch,
  LimitMismatchError,
  type OnceContext,
  once,
  type RefreshOptions,
  refreshOnce,
  type SingletonMode,
  singleton,
} from "../../../../src/sync/index.ts";
import { eachInTurns } from "../../../support/in-turns.ts";
import { newResource } from "../../../support/local-endpoints.ts";
import { isSettled, rejection } from "../../../support/outcomes.ts";
import { allArrived, type OpenStore } from "../../../support/stores.ts";
import { until } from "../../../support/until.ts";
import { costOf, onEach, stores, type Visitor, visitor } from "../stand.ts";

// Latch, barrier, once and debounce: what can differ by engine, number of endpoints and dialect.

const unreachable = () => expect.unreachable("it must not run");

eachInTurns(stores([1, 2, 3, 5], [3]))("on $title", ({ open, engine }) => {
  let store: OpenStore;
  let first: Visitor;
  let second: Visitor;

  beforeAll(async () => {
    store = await open();
    first = visitor(store);
    second = visitor(store);
  });
  afterAll(() => store.close());

  // A lock server bills no commands.
  const billed = engine === "durable" ? () => undefined : test;

  /** What each of these costs at every endpoint that knows the scripts. */
  async function costsOf(works: readonly ((redlock: Visitor["redlock"]) => Promise<unknown>)[]) {
    const own = visitor(store);
    const costs: number[][] = [];
    for (const work of works) costs.push(await costOf(store, own, () => work(own.redlock)));
    return costs;
  }

  test("a latch opens with the last arrival, counts each id once, and stays open", async () => {
    const name = newResource("latch");
    const latchOf = ({ redlock }: Visitor, count = 3) => new CountDownLatch(redlock, name, { count });
    const waiting = visitor(store);
    const opened = latchOf(waiting).wait({ wait: Infinity });
    const states = [];
    for (const id of ["1", "true", "1"]) {
      states.push(await latchOf(first).arrive(id));
      await allArrived(first.links);
    }
    const before = waiting.links[0]!.sent.length;
    await until(() => waiting.links[0]!.sent.length > before + 2, "looks at the latch");
    expect(await isSettled(opened)).toBe(false);
    const other = latchOf(second, 4);
    expect(await rejection(other.inspect())).toBeInstanceOf(LimitMismatchError);
    states.push(await latchOf(first).arrive("[1]"));
    await opened;
    expect(states).toEqual([
      { open: false, arrived: 1, remaining: 2 },
      { open: false, arrived: 2, remaining: 1 },
      { open: false, arrived: 2, remaining: 1 },
      { open: true, arrived: 3, remaining: 0 },
    ]);
    expect((await latchOf(second).arrive("late")).open).toBe(true);
  });

  billed("a latch costs the requests and commands that are documented", async () => {
    const name = newResource("latch");
    const latchOf = (redlock: Visitor["redlock"]) => new CountDownLatch(redlock, name, { count: 2 });
    const [, ...costs] = await costsOf([
      (redlock) => latchOf(redlock).inspect(),
      (redlock) => latchOf(redlock).inspect(),
      ...["a", "a", "b"].map((id) => (redlock: Visitor["redlock"]) => latchOf(redlock).arrive(id)),
      (redlock) => latchOf(redlock).wait(),
    ]);
    expect(costs).toEqual([
      [1, 2],
      [1, 6],
      [1, 3],
      [2, 11],
      [1, 2],
    ]);
  });

  test("of replicas that call at the same moment one runs, for an interval that the endpoints keep", async () => {
    const name = newResource("nightly");
    const runs: OnceContext[] = [];
    const outcomes = await Promise.all(
      Array.from({ length: 5 }, (_, index) => {
        const own = visitor(store);
        // Each request is executed twice.
        for (const link of own.links) link.fate = () => "twice";
        return once(own.redlock, name, { every: 600_000 }, (turn) => runs.push(turn) && index);
      }),
    );
    expect(runs).toHaveLength(1);
    expect(runs[0]!.fence).toBeGreaterThan(0);
    const values = outcomes.flatMap((outcome) => (outcome.ran ? [outcome.value] : []));
    expect(values).toEqual([outcomes.findIndex(({ ran }) => ran)]);
    for (const outcome of outcomes) {
      if (outcome.ran) continue;
      expect(outcome.retryAfter).toBeGreaterThan(300_000);
      expect(outcome.retryAfter).toBeLessThanOrEqual(600_000);
    }
    expect((await once(second.redlock, name, { every: 600_000 }, unreachable)).ran).toBe(false);
    const key = keyOf("redlock", "once", name);
    await until(async () => {
      const ttls = (await onEach(store, "PTTL", key)) as number[];
      return ttls.every((ms) => ms > 300_000 && ms <= 600_000);
    });
  });

  billed("a run costs two requests and ten commands, a refusal one and three", async () => {
    const names = [newResource("nightly"), newResource("nightly")];
    const run = (name?: string) => (redlock: Visitor["redlock"]) =>
      once(redlock, name!, { every: 600_000 }, () => 1);
    const [, ...costs] = await costsOf([run(names[0]), run(names[1]), run(names[1])]);
    expect(costs).toEqual([
      [2, 10],
      [1, 3],
    ]);
  });

  billed("a refresh costs two requests, and a refusal one", async () => {
    const parts: RefreshOptions<string> = {
      read: () => "t0",
      isFresh: (token) => token !== "t0",
      refresh: () => "t1",
      write: () => true,
    };
    const refresh = (redlock: Visitor["redlock"]) => refreshOnce(redlock, newResource("token"), parts);
    const [, cost] = await costsOf([refresh, refresh]);
    // Dialect `redis` releases by a script.
    expect([
      [2, 6],
      [2, 8],
    ]).toContainEqual(cost);
    // The endpoints have shown to this client that they release locks.
    await refresh(first.redlock);
    const key = newResource("token");
    await second.redlock.using(key, async () => {
      await allArrived(second.links);
      const waiting = () => rejection(refreshOnce(first.redlock, key, { ...parts, wait: 0 }));
      expect(await costOf(store, first, waiting)).toEqual([1, 3]);
    });
  });

  billed("a job costs two requests, and with coalesce and cancel four", async () => {
    const run = (mode: SingletonMode) => (redlock: Visitor["redlock"]) =>
      singleton(redlock, newResource("job"), { mode }, () => undefined);
    const [, ...costs] = await costsOf([run("cancel"), run("skip"), run("coalesce"), run("cancel")]);
    const commands = costs[0]![1]!;
    expect([6, 8]).toContain(commands);
    expect(costs).toEqual([
      [2, commands],
      [4, commands + 9],
      [4, commands + 9],
    ]);
  });
});
