import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemRuntime } from "../../../src/index.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { CyclicBarrier } from "../../../src/sync/index.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { isSettled } from "../../support/outcomes.ts";
import { allArrived, type OpenStore } from "../../support/stores.ts";
import { until } from "../../support/until.ts";
import { stores, type Visitor, visitor } from "./stand.ts";

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

    test("an earlier run that a minority remembers is not a later generation", async () => {
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
  },
);
