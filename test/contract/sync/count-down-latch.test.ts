import { afterAll, beforeAll, expect, test } from "vitest";
import { CountDownLatch, LimitMismatchError } from "../../../src/sync/index.ts";
import { eachInTurns } from "../../support/in-turns.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { isSettled, rejection } from "../../support/outcomes.ts";
import { allArrived, type OpenStore } from "../../support/stores.ts";
import { until } from "../../support/until.ts";
import { stores, type Visitor, visitor } from "./stand.ts";

eachInTurns(stores([1, 2, 3, 5], [3]))("CountDownLatch on $title", ({ open, count: endpoints }) => {
  const minority = Math.floor((endpoints - 1) / 2);
  let store: OpenStore;
  let first: Visitor;
  let second: Visitor;

  beforeAll(async () => {
    store = await open();
    first = visitor(store);
    second = visitor(store);
  });
  afterAll(() => store.close());

  const latchOf = ({ redlock }: Visitor, name: string, count = 3) =>
    new CountDownLatch(redlock, name, { count });

  /** Arrivals one after another, each at every endpoint. Returns what the last one returned. */
  async function arriveAll(visitor: Visitor, name: string, ids: readonly string[]) {
    let state: unknown;
    for (const id of ids) {
      state = await latchOf(visitor, name).arrive(id);
      await allArrived(visitor.links);
    }
    return state;
  }

  test("opens with the last arrival, counts each id once, and stays open", async () => {
    const name = newResource("latch");
    const states = [];
    for (const id of ["1", "true", "1", "[1]"]) {
      states.push(await latchOf(first, name).arrive(id));
      await allArrived(first.links);
    }
    expect(states).toEqual([
      { open: false, arrived: 1, remaining: 2 },
      { open: false, arrived: 2, remaining: 1 },
      { open: false, arrived: 2, remaining: 1 },
      { open: true, arrived: 3, remaining: 0 },
    ]);
    await latchOf(second, name).wait({ wait: 0 });
    expect((await latchOf(second, name).inspect()).open).toBe(true);
    expect((await latchOf(second, name).arrive("late")).open).toBe(true);
  });

  test("waiting calls return when it opens", async () => {
    const name = newResource("latch");
    const waiting = visitor(store);
    const opened = latchOf(waiting, name).wait({ wait: 60_000 });
    await latchOf(first, name).arrive("a");
    await latchOf(first, name).arrive("b");
    const before = waiting.links[0]!.sent.length;
    await until(() => waiting.links[0]!.sent.length > before + 2, "looks at the latch");
    expect(await isSettled(opened)).toBe(false);
    await latchOf(first, name).arrive("c");
    await opened;
  });

  test("opens with a minority down, and stays open with another minority down", async () => {
    const name = newResource("latch");
    const cut = visitor(store);
    for (const link of cut.links.slice(0, minority)) link.fate = () => "refused";
    expect(await arriveAll(cut, name, ["a", "b", "c"])).toMatchObject({ open: true });
    const other = visitor(store);
    for (const link of other.links.slice(endpoints - minority)) link.fate = () => "refused";
    expect((await latchOf(other, name).inspect()).open).toBe(true);
  });

  test("another count is an error", async () => {
    const name = newResource("latch");
    await arriveAll(first, name, ["a"]);
    const other = latchOf(second, name, 4);
    for (const call of [() => other.arrive("b"), () => other.wait(), () => other.inspect()]) {
      const error = await rejection(call());
      expect(error).toBeInstanceOf(LimitMismatchError);
      expect(error).toMatchObject({ code: "LIMIT_MISMATCH", resource: name, limit: 4, inUse: 3 });
    }
    expect(await latchOf(first, name).inspect()).toMatchObject({ arrived: 1 });
  });

  test("costs the requests and commands that are documented", async () => {
    const name = newResource("latch");
    const { redlock, links } = visitor(store);
    const latch = new CountDownLatch(redlock, name, { count: 2 });
    const total = () =>
      store.endpoints
        .map((_, index) => store.cost(index))
        .reduce((sum, cost) => [sum[0]! + cost.requests, sum[1]! + cost.billed], [0, 0]);
    const costOf = async (call: () => Promise<unknown>) => {
      await allArrived(links);
      const [requests, commands] = total();
      await call();
      await allArrived(links);
      const after = total();
      return [after[0]! - requests!, after[1]! - commands!].map((sum) => sum / endpoints);
    };
    await latch.inspect();
    expect(await costOf(() => latch.inspect())).toEqual([1, 2]);
    expect(await costOf(() => latch.arrive("a"))).toEqual([1, 6]);
    expect(await costOf(() => latch.arrive("a"))).toEqual([1, 3]);
    expect(await costOf(() => latch.arrive("b"))).toEqual([2, 11]);
    expect(await costOf(() => latch.wait())).toEqual([1, 2]);
  });
});
