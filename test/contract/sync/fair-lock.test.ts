import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { LockLostError } from "../../../src/index.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { FairLock } from "../../../src/sync/index.ts";
import { eachInTurns } from "../../support/in-turns.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import { paced } from "../../support/pace.ts";
import { allArrived, type OpenStore } from "../../support/stores.ts";
import { until } from "../../support/until.ts";
import { onEach, standing, stores, type Visitor, visitor } from "./stand.ts";

const seen = ({ events }: Visitor, type: string) => events.filter((event) => event.type === type);

eachInTurns(stores([1, 2, 3, 5], [3]))("FairLock on $title", ({ open, count }) => {
  const _quorum = Math.floor(count / 2) + 1;
  let store: OpenStore;
  let first: Visitor;
  let second: Visitor;

  beforeAll(async () => {
    store = await open();
    first = visit({ ttl: 20_000 });
    second = visit({ ttl: 20_000 });
  });
  afterEach(() => {
    // Lost requests stay pending; they must not disturb other tests.
    opened.splice(2);
  });
  afterAll(() => store.close());

  const lockOf = async (name: string) =>
    (await standing(store, "fair", name)).filter((value) => value !== null);
  const queueOf = async (name: string) =>
    (await standing(store, "queue", name)).filter((value) => value !== null);
  const opened: Visitor[] = [];
  const visit = (options: Parameters<typeof visitor>[1] = {}) => {
    const visiting = visitor(store, options);
    opened.push(visiting);
    return visiting;
  };
  /** Nothing remains, even before it would have expired. */
  const nothing = async (name: string) => {
    await allArrived(opened.flatMap(({ links }) => links));
    expect([await lockOf(name), await queueOf(name)]).toEqual([[], []]);
  };
  /** A waiter that has been refused by so many endpoints that nobody can overtake it. */
  const waiter = async (name: string, options = {}, signal?: AbortSignal) => {
    const visiting = visit({ wait: 60_000, ...options });
    const turn = new FairLock(visiting.redlock, name).acquire({ signal });
    turn.catch(() => undefined);
    await until(() => seen(visiting, "contended").length > 0, "contention");
    return { ...visiting, turn };
  };

  test("is held by one at a time, and free after its release", async () => {
    const name = newResource("fair");
    const hold = await new FairLock(first.redlock, name).acquire();
    await allArrived(first.links);
    expect(await lockOf(name)).toHaveLength(count);
    expect(new Set(await lockOf(name)).size).toBe(1);
    expect([hold.ttl, hold.signal.aborted, hold.remaining() > 0]).toEqual([20_000, false, true]);
    expect(await new FairLock(second.redlock, name).tryAcquire()).toBeNull();
    expect(await hold.verify()).toBe(true);
    expect(await hold.release()).toBe(true);
    expect([hold.remaining(), hold.signal.aborted, await hold.release()]).toEqual([0, false, false]);
    await nothing(name);
    expect(await new FairLock(second.redlock, name).tryAcquire()).not.toBeNull();
  });

  test("is granted to the waiters in the order in which they came", async () => {
    const name = newResource("fair");
    const hold = await new FairLock(first.redlock, name).acquire();
    const order: number[] = [];
    const turns: Promise<unknown>[] = [];
    for (let index = 0; index < 4; index += 1) {
      const came = Date.now();
      const { turn } = await waiter(name);
      turns.push(
        turn.then((held) => {
          order.push(index);
          return held.release();
        }),
      );
      // Ties within a millisecond are arbitrary.
      await until(() => Date.now() > came);
    }
    expect(order).toEqual([]);
    await hold.release();
    expect(await Promise.all(turns)).toEqual([true, true, true, true]);
    expect(order).toEqual([0, 1, 2, 3]);
    await nothing(name);
  });

  test("tryAcquire does not overtake waiters, and does not join the queue", async () => {
    const name = newResource("fair");
    const hold = await new FairLock(first.redlock, name).acquire();
    const fair = new FairLock(second.redlock, name);
    expect(await fair.tryAcquire()).toBeNull();
    expect(await queueOf(name)).toEqual([]);
    const controller = new AbortController();
    const { turn, links } = await waiter(name, { backoff: () => 60_000 }, controller.signal);
    await allArrived(links);
    await hold.release();
    expect(await lockOf(name)).toEqual([]);
    expect(await fair.tryAcquire()).toBeNull();
    controller.abort();
    await rejection(turn);
    await allArrived(links);
    expect(await fair.tryAcquire()).not.toBeNull();
  });

  test("a dead holder's lock is granted to the first waiter after its ttl", async () => {
    const name = newResource("fair");
    const dead = await new FairLock(first.redlock, name).acquire({ ttl: paced(300) });
    const next = await new FairLock(second.redlock, name).acquire({ wait: 60_000 });
    expect(dead.remaining()).toBeLessThanOrEqual(0);
    expect(dead.signal.reason).toBeInstanceOf(LockLostError);
    expect(await next.verify()).toBe(true);
    expect(await dead.release()).toBe(false);
    expect(await next.verify()).toBe(true);
  });

  test("extend prolongs the hold, and never creates it again", async () => {
    const name = newResource("fair");
    const hold = await new FairLock(first.redlock, name).acquire({ ttl: 3_000 });
    await allArrived(first.links);
    expect(await hold.extend(40_000)).toBeGreaterThan(30_000);
    await allArrived(first.links);
    const ttls = (await onEach(store, "PTTL", keyOf("redlock", "fair", name))) as number[];
    expect(Math.min(...ttls)).toBeGreaterThan(30_000);
    await onEach(store, "DEL", keyOf("redlock", "fair", name));
    expect(await rejection(hold.extend())).toBeInstanceOf(LockLostError);
    expect(hold.signal.reason).toBeInstanceOf(LockLostError);
    await nothing(name);
  });

  test("`await using` releases it, and autoExtend keeps it until then", async () => {
    const name = newResource("fair");
    const auto = visit();
    {
      await using hold = await new FairLock(auto.redlock, name, {
        ttl: paced(1_200),
        autoExtend: true,
      }).acquire();
      await until(() => seen(auto, "extended").length >= 2, "extensions");
      expect([hold.signal.aborted, await hold.verify()]).toEqual([false, true]);
    }
    await nothing(name);
  });

  test("names, prefixes and plain locks are separate", async () => {
    const name = newResource("fair");
    const make = (other: string, options = {}) => new FairLock(first.redlock, other, options).tryAcquire();
    expect(await make(name)).not.toBeNull();
    expect(await make(`{${name}}`)).not.toBeNull();
    expect(await make(name, { prefix: "other" })).not.toBeNull();
    expect(await first.redlock.tryAcquire(name)).not.toBeNull();
    expect(await make(name)).toBeNull();
  });

  test("a repeated request does no more than the first", async () => {
    const name = newResource("fair");
    const twice = visit({ ttl: 20_000 });
    for (const link of twice.links) link.fate = () => "twice";
    const hold = await new FairLock(twice.redlock, name).acquire();
    await allArrived(twice.links);
    expect(await lockOf(name)).toHaveLength(count);
    const { turn } = await waiter(name);
    for (const queue of await queueOf(name)) expect(String(queue)).toMatch(/^\w+:\d+$/);
    // The second execution of a plain release returns that nothing was there.
    for (const link of twice.links) link.fate = () => "delivered";
    expect(await hold.release()).toBe(true);
    await (await turn).release();
    await nothing(name);
  });

  test.runIf(count > 2)("keeps the order with an endpoint down", async () => {
    const name = newResource("fair");
    const down = { down: true };
    const visiting = Array.from({ length: 3 }, () => visit({ wait: 60_000, timeout: 1_000 }));
    for (const { links } of visiting) links[0]!.fate = () => (down.down ? "refused" : "delivered");
    const others = visiting.slice(1);
    const hold = await new FairLock(visiting[0]!.redlock, name).acquire();
    const order: number[] = [];
    const turns: Promise<boolean>[] = [];
    for (const [index, other] of others.entries()) {
      const came = Date.now();
      turns.push(
        new FairLock(other.redlock, name).acquire().then((turn) => {
          order.push(index);
          return turn.release();
        }),
      );
      await until(() => seen(other, "contended").length > 0, "contention");
      await until(() => Date.now() > came);
    }
    expect(await hold.release()).toBe(true);
    expect(await Promise.all(turns)).toEqual([true, true]);
    expect(order).toEqual([0, 1]);
  });

  test("costs the requests and commands that are documented", async () => {
    const name = newResource("fair");
    const { redlock, links } = visit();
    const { dialect, exactReplies } = store.endpoints[0]!;
    const isNative = dialect !== "redis" && exactReplies;
    const costOf = async (call: () => Promise<unknown>) => {
      const cost = () => store.endpoints.map((_, index) => store.cost(index));
      const sum = (costs: ReturnType<typeof cost>, what: "requests" | "billed") =>
        costs.reduce((total, each) => total + each[what], 0);
      const before = cost();
      await call();
      await allArrived(links);
      const after = cost();
      return [sum(after, "requests") - sum(before, "requests"), sum(after, "billed") - sum(before, "billed")];
    };
    const fair = new FairLock(redlock, name);
    const warm = await fair.acquire();
    await warm.release();
    let hold = warm;
    const acquired = await costOf(async () => {
      hold = await fair.acquire();
    });
    expect(acquired).toEqual([count, 3 * count]);
    expect(await costOf(() => hold.extend())).toEqual([count, (isNative ? 1 : 3) * count]);
    expect(await costOf(() => fair.tryAcquire())).toEqual([count, 3 * count]);
    // One refused request that joins the queue, and one that leaves it.
    const gaveUp = await costOf(async () => {
      const controller = new AbortController();
      const { turn, links: others } = await waiter(name, { backoff: () => 60_000 }, controller.signal);
      await allArrived(others);
      controller.abort();
      await rejection(turn);
      await allArrived(others);
    });
    expect(gaveUp).toEqual([2 * count, (4 + 5) * count]);
    expect(await costOf(() => hold.release())).toEqual([count, (isNative ? 1 : 3) * count]);
  });
});
