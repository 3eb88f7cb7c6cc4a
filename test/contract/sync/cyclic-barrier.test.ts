import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { QuorumError, Redlock, systemRuntime } from "../../../src/index.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { ArrivalsMissingError, CyclicBarrier, LimitMismatchError } from "../../../src/sync/index.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { isSettled, rejection } from "../../support/outcomes.ts";
import { allArrived, type OpenStore } from "../../support/stores.ts";
import { until } from "../../support/until.ts";
import { onEach, stores, type Visitor, visitor } from "./stand.ts";

const patient = { wait: 60_000 };

// Concurrent, because they mostly wait for each other.
describe.each(stores([1, 2, 3, 5], [3]))(
  "CyclicBarrier on $title",
  { concurrent: true },
  ({ open, count }) => {
    const minority = Math.floor((count - 1) / 2);
    let store: OpenStore;

    beforeAll(async () => {
      store = await open();
    });
    afterAll(() => store.close());

    /** A party in its own process. */
    interface Party extends Visitor {
      meet(options?: { wait?: number; signal?: AbortSignal }): Promise<number>;
    }
    function party(name: string, id: string, { parties = 3, runtime = systemRuntime } = {}): Party {
      const own = visitor(store, { runtime, backoff: { min: 10, max: 40 } });
      const barrier = new CyclicBarrier(own.redlock, name, { parties });
      return { ...own, meet: (call = patient) => barrier.arriveAndWait(id, call) };
    }
    const three = (name: string): Party[] => ["a", "b", "c"].map((id) => party(name, id));
    const waits = ({ links }: Party, more = 2) => {
      const before = links[0]!.sent.length;
      return until(() => links[0]!.sent.length > before + more, "a party that waits");
    };

    /** Three generations; in each, no party passes before the last has arrived. Returns their numbers. */
    async function threeTimes(parties: readonly Party[]): Promise<number[]> {
      const numbers: number[] = [];
      for (let turn = 0; turn < 3; turn += 1) {
        const last = parties[turn]!;
        const early = parties.filter((other) => other !== last).map((other) => other.meet());
        await waits(parties.find((other) => other !== last)!);
        for (const waiting of early) expect(await isSettled(waiting)).toBe(false);
        const passed = await Promise.all([...early, last.meet()]);
        expect(new Set(passed).size, `numbers of generation ${turn}: ${passed}`).toBe(1);
        numbers.push(passed[0]!);
      }
      return numbers;
    }

    test("three parties pass it three times, each time together", async () => {
      const numbers = await threeTimes(three(newResource("barrier")));
      expect(numbers).toEqual([numbers[0]!, numbers[0]! + 1, numbers[0]! + 2]);
    });

    test("three parties pass it with repeated and late requests, and with lost replies", async () => {
      const parties = three(newResource("barrier"));
      for (const { links } of parties) {
        for (const [index, link] of links.entries()) {
          let sent = index;
          link.fate = () => (["delivered", "twice", "reply lost", "refused"] as const)[sent++ % 4]!;
        }
      }
      await threeTimes(parties);
    });

    test("three parties pass it with a minority down, another one for each party", async () => {
      const parties = three(newResource("barrier"));
      for (const [index, { links }] of parties.entries()) {
        for (let down = 0; down < minority; down += 1)
          links[(index + down) % count]!.fate = () => "reply lost";
      }
      await threeTimes(parties);
    });

    test("a party whose process restarts goes on waiting, and counts once", async () => {
      const name = newResource("barrier");
      const [a, b, c] = three(name) as [Party, Party, Party];
      const controller = new AbortController();
      const { signal } = controller;
      const died = rejection(a.meet({ ...patient, signal }));
      await waits(a);
      controller.abort(new Error("killed"));
      expect(await died).toEqual(new Error("killed"));
      await allArrived(a.links);

      const again = party(name, "a");
      const [first, second] = [again.meet(), b.meet()];
      await waits(again);
      await waits(b);
      expect([await isSettled(first), await isSettled(second)]).toEqual([false, false]);
      const passed = await Promise.all([first, second, c.meet()]);
      expect(new Set(passed).size).toBe(1);
      expect(await Promise.all([again, b, c].map((each) => each.meet()))).toEqual(passed.map((n) => n + 1));
    });

    test("a party that gives up waiting has arrived; called again, it passes if the others have", async () => {
      const name = newResource("barrier");
      const [a, b, c] = three(name) as [Party, Party, Party];
      const error = await rejection(a.meet({ wait: 0 }));
      expect(error).toBeInstanceOf(ArrivalsMissingError);
      expect(error).toMatchObject({ code: "ARRIVALS_MISSING", resource: name, count: 3, arrived: 1 });
      await allArrived(a.links);
      const [second, third] = await Promise.all([b.meet(), c.meet()]);
      const early = b.meet();
      await waits(b);
      // The number of its own generation, although the others are at the next one by now.
      expect(await a.meet()).toBe(second);
      expect(third).toBe(second);
      expect(await isSettled(early)).toBe(false);
      expect(await Promise.all([a.meet(), early, c.meet()])).toEqual([second + 1, second + 1, second + 1]);
    });

    test("an outage is a QuorumError, and the party can go on afterwards", async () => {
      const name = newResource("barrier");
      const [a, b, c] = three(name) as [Party, Party, Party];
      for (const link of a.links.slice(minority)) link.fate = () => "reply lost";
      expect(await rejection(a.meet({ wait: 20 }))).toBeInstanceOf(QuorumError);
      for (const link of a.links) link.fate = () => "delivered";
      const [first, ...others] = await Promise.all([a.meet(), b.meet(), c.meet()]);
      expect(others).toEqual([first, first]);
    });

    test("endpoints that lost their memory get the arrivals again", async () => {
      const name = newResource("barrier");
      const [a, b, c] = three(name) as [Party, Party, Party];
      const early = [a.meet(), b.meet()];
      await waits(a);
      await waits(b);
      await onEach(store, "DEL", keyOf("redlock", "barrier", name));
      const [first, ...others] = await Promise.all([...early, c.meet()]);
      expect(others).toEqual([first, first]);
    });

    test("an earlier run that a minority remembers is no later generation", async () => {
      if (minority === 0) return;
      const name = newResource("barrier");
      const key = keyOf("redlock", "barrier", name);
      const before = three(name);
      const [old] = await Promise.all(before.map((each) => each.meet()));
      await Promise.all(before.map(({ links }) => allArrived(links)));
      for (let index = minority; index < count; index += 1) await store.execute(index, ["DEL", key]);
      // Two days later, the first party does not reach that minority.
      const runtime = { ...systemRuntime, now: () => Date.now() + 2 * 86_400_000 };
      const [a, b, c] = ["a", "b", "c"].map((id) => party(name, id, { runtime })) as [Party, Party, Party];
      for (const link of a.links.slice(0, minority)) link.fate = () => "refused";
      const early = a.meet();
      await waits(a);
      const [number, ...others] = await Promise.all([early, b.meet(), c.meet()]);
      expect(others).toEqual([number, number]);
      expect(number).toBeGreaterThan(old! + 1);
    });

    test("a minority that is a generation behind leads no party back", async () => {
      if (minority === 0) return;
      const name = newResource("barrier");
      const key = keyOf("redlock", "barrier", name);
      const [a, b] = ["a", "b"].map((id) => party(name, id, { parties: 2 })) as [Party, Party];
      const early = a.meet();
      await waits(a);
      const behind = String(await store.execute(0, ["HGET", key, "g"]));
      const [first] = await Promise.all([early, b.meet()]);
      await Promise.all([a, b].map(({ links }) => allArrived(links)));
      for (let index = 0; index < minority; index += 1) {
        await store.execute(index, ["HSET", key, "g", behind, "ia", "1", "ib", "1"]);
      }
      // At first no other endpoint answers.
      for (const link of a.links.slice(minority)) {
        const before = link.sent.length;
        link.fate = () => (link.sent.length < before + 3 ? "refused" : "delivered");
      }
      const again = a.meet();
      await waits(a, 4);
      expect(await Promise.all([again, b.meet()])).toEqual([first + 1, first + 1]);
    });

    test("an unexpected reply is no arrival", async () => {
      const replies = [["t0", "g1", []], ["OK"], "OK", null, 1];
      for (const reply of replies) {
        const garbled = new Redlock({
          endpoints: store.endpoints.map(({ name, dialect }) => ({ name, dialect, send: async () => reply })),
        });
        const barrier = new CyclicBarrier(garbled, newResource(), { parties: 1 });
        const error = await rejection(barrier.arriveAndWait("a", { wait: 0 }));
        expect(error, JSON.stringify(reply)).toBeInstanceOf(QuorumError);
      }
    });

    test("another number of parties is an error", async () => {
      const name = newResource("barrier");
      const a = party(name, "a");
      await rejection(a.meet({ wait: 0 }));
      await allArrived(a.links);
      const error = await rejection(party(name, "b", { parties: 2 }).meet());
      expect(error).toBeInstanceOf(LimitMismatchError);
      expect(error).toMatchObject({ code: "LIMIT_MISMATCH", resource: name, limit: 2, inUse: 3 });
    });

    test("every key expires", async () => {
      const name = newResource("barrier");
      const own = visitor(store);
      const barrier = new CyclicBarrier(own.redlock, name, { parties: 1, ttl: 30_000 });
      await barrier.arriveAndWait("a");
      await allArrived(own.links);
      for (const ms of (await onEach(store, "PTTL", keyOf("redlock", "barrier", name))) as number[]) {
        expect(ms > 20_000 && ms <= 30_000).toBe(true);
      }
    });
  },
);

describe("arguments", async () => {
  const store = await stores([1], [])[0]!.open();
  const { redlock, links } = visitor(store);
  const wrong = (value: unknown) => value as never;
  const barrier = new CyclicBarrier(redlock, "b", { parties: 1 });

  test.each<[string, () => unknown, typeof RangeError | typeof TypeError, RegExp]>([
    ["parties 0", () => new CyclicBarrier(redlock, "b", { parties: 0 }), RangeError, /parties.*0/],
    ["parties 1 001", () => new CyclicBarrier(redlock, "b", { parties: 1_001 }), RangeError, /parties.*1001/],
    [
      "parties '2'",
      () => new CyclicBarrier(redlock, "b", { parties: wrong("2") }),
      TypeError,
      /parties.*"2"/,
    ],
    ["no name", () => new CyclicBarrier(redlock, "", { parties: 1 }), RangeError, /0/],
    ["ttl 9", () => new CyclicBarrier(redlock, "b", { parties: 1, ttl: 9 }), RangeError, /ttl.*9/],
    ["no id", () => barrier.arriveAndWait(""), RangeError, /id.*0/],
    ["id 7", () => barrier.arriveAndWait(wrong(7)), TypeError, /id.*number/],
    ["wait −1", () => barrier.arriveAndWait("a", { wait: -1 }), RangeError, /wait.*-1/],
    ["signal {}", () => barrier.arriveAndWait("a", { signal: wrong({}) }), TypeError, /signal/],
  ])("%s is refused before anything is sent", async (_what, call, type, message) => {
    const error = await rejection((async () => call())());
    expect(error).toBeInstanceOf(type);
    expect((error as Error).message).toMatch(message);
    expect(links.flatMap(({ sent }) => sent)).toEqual([]);
  });
});
