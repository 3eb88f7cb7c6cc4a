import { afterAll, beforeAll, expect, test } from "vitest";
import { LockLostError, QuorumError, Redlock } from "../../../src/index.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { type Hold, ReentrantLock, type ReentrantLockOptions } from "../../../src/sync/index.ts";
import { eachInTurns } from "../../support/in-turns.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import { paced } from "../../support/pace.ts";
import { allArrived, type OpenStore } from "../../support/stores.ts";
import { until } from "../../support/until.ts";
import { onEach, stores, type Visitor, visitor } from "./stand.ts";

eachInTurns(stores([1, 2, 3, 5], [3]))("ReentrantLock on $title", ({ open, count }) => {
  const quorum = Math.floor(count / 2) + 1;
  let store: OpenStore;
  let first: Visitor;
  let second: Visitor;

  beforeAll(async () => {
    store = await open();
    first = visitor(store, { ttl: 20_000 });
    second = visitor(store, { ttl: 20_000 });
  });
  afterAll(() => store.close());

  /** Holds by endpoint. */
  const holds = async (name: string) =>
    (await onEach(store, "ZCARD", keyOf("redlock", "reentrant", name))) as number[];
  const sumOf = (numbers: readonly number[]) => numbers.reduce((sum, number) => sum + number, 0);
  const make = ({ redlock }: Visitor, name: string, options: ReentrantLockOptions = {}) =>
    new ReentrantLock(redlock, name, options);

  test("its owner acquires it repeatedly, another owner after the last release", async () => {
    const name = newResource("reentrant");
    const mine = make(first, name);
    const theirs = make(second, name);
    const kept: Hold[] = [];
    for (let index = 0; index < 3; index += 1) kept.push(await mine.acquire({ wait: 0 }));
    await allArrived(first.links);
    expect(await holds(name)).toEqual(new Array(count).fill(3));
    for (const hold of kept) {
      expect(await theirs.tryAcquire()).toBeNull();
      expect([hold.ttl, hold.remaining() > 0, hold.remaining() < 20_000]).toEqual([20_000, true, true]);
      expect(await hold.verify()).toBe(true);
      expect(await hold.release()).toBe(true);
      expect([await hold.release(), await hold.verify(), hold.signal.aborted]).toEqual([false, false, false]);
    }
    expect(await holds(name)).toEqual(new Array(count).fill(0));
    expect(await (await theirs.tryAcquire())!.verify()).toBe(true);
    expect(await mine.tryAcquire()).toBeNull();
  });

  test("an object is an owner of its own; with the owner's name another process is the same owner", async () => {
    const name = newResource("reentrant");
    const mine = make(first, name);
    await mine.acquire();
    expect(await make(first, name).tryAcquire()).toBeNull();
    expect(await make(second, name, { owner: `${mine.owner}1` }).tryAcquire()).toBeNull();
    expect(await make(second, name, { owner: mine.owner.slice(1) }).tryAcquire()).toBeNull();
    expect(await make(second, name, { owner: mine.owner }).tryAcquire()).not.toBeNull();
  });

  test.runIf(count === 1)("any text can be an owner", async () => {
    for (const owner of ["1", "null", "{}", '"quoted"', "t:ü 🔒", " ", "x".repeat(255)]) {
      const name = newResource("reentrant");
      const hold = await make(first, name, { owner }).acquire({ wait: 0 });
      expect(await make(second, name).tryAcquire()).toBeNull();
      const again = await make(second, name, { owner }).acquire({ wait: 0 });
      expect(await hold.extend()).toBeGreaterThan(0);
      expect([await again.release(), await hold.release()]).toEqual([true, true]);
    }
  });

  test("a dead owner's holds expire after their ttl", async () => {
    const name = newResource("reentrant");
    const mine = make(first, name);
    const dead = [await mine.acquire({ ttl: paced(120) }), await mine.acquire({ ttl: paced(150) })];
    const next = await make(second, name).acquire({ wait: 60_000 });
    for (const hold of dead) {
      expect(hold.remaining()).toBeLessThanOrEqual(0);
      expect(await hold.release()).toBe(false);
      expect(await rejection(hold.extend())).toBeInstanceOf(LockLostError);
    }
    expect(await next.verify()).toBe(true);
  });

  test("a hold that is gone is lost at its next extension, and is not created again", async () => {
    const name = newResource("reentrant");
    const hold = await make(first, name).acquire();
    await allArrived(first.links);
    await onEach(store, "DEL", keyOf("redlock", "reentrant", name));
    expect(await rejection(hold.extend())).toBeInstanceOf(LockLostError);
    expect(await holds(name)).toEqual(new Array(count).fill(0));
  });

  test("repeated requests make one hold each, and release all of it", async () => {
    const name = newResource("reentrant");
    const twice = visitor(store, { ttl: 20_000 });
    for (const link of twice.links) link.fate = () => "twice";
    const mine = make(twice, name);
    const outer = await mine.acquire({ wait: 0 });
    const inner = await mine.acquire({ wait: 0 });
    await allArrived(twice.links);
    expect(await holds(name)).toEqual(new Array(count).fill(2));
    expect(await inner.extend(5_000)).toBeGreaterThan(0);
    expect(await make(second, name).tryAcquire()).toBeNull();
    // The second execution is answered.
    expect(await inner.release()).toBe(true);
    await allArrived(twice.links);
    expect(await holds(name)).toEqual(new Array(count).fill(1));
    expect(await outer.verify()).toBe(true);
    expect(await make(second, name).tryAcquire()).toBeNull();
    expect(await outer.release()).toBe(true);
    await allArrived(twice.links);
    expect(await holds(name)).toEqual(new Array(count).fill(0));
    expect(await make(second, name).tryAcquire()).not.toBeNull();
  });

  test("a late repeated acquire shortens no extension and adds no hold", async () => {
    const name = newResource("reentrant");
    const late = visitor(store, { ttl: 5_000 });
    const hold = await make(late, name).acquire({ wait: 0 });
    await allArrived(late.links);
    const acquires = late.links.map(({ sent }) => sent.at(-1)!);
    await hold.extend(60_000);
    await allArrived(late.links);
    await Promise.all(
      store.endpoints.map((endpoint, index) => endpoint.send(acquires[index]!, new AbortController().signal)),
    );
    expect(await holds(name)).toEqual(new Array(count).fill(1));
    const key = keyOf("redlock", "reentrant", name);
    for (const left of (await onEach(store, "PTTL", key)) as number[]) expect(left).toBeGreaterThan(50_000);
    for (const found of (await onEach(store, "ZRANGE", key, "0", "-1", "WITHSCORES")) as string[][]) {
      expect(Number(found[1]) - Date.now()).toBeGreaterThan(50_000);
    }
    expect(await hold.release()).toBe(true);
    expect(await holds(name)).toEqual(new Array(count).fill(0));
  });

  test.runIf(count > 2)("a minority of endpoints may be down, or reply nonsense", async () => {
    const name = newResource("reentrant");
    const lame = visitor(store, { ttl: 20_000 });
    lame.links.slice(quorum).forEach((link, index) => {
      if (index % 2 === 0) link.fate = () => "refused";
      else Object.assign(link, { send: async () => ["t", 1] });
    });
    const mine = make(lame, name);
    const holdsOfMine = [await mine.acquire({ wait: 0 }), await mine.acquire({ wait: 0 })];
    expect(await make(second, name).tryAcquire()).toBeNull();
    expect(await holdsOfMine[0]!.extend()).toBeGreaterThan(0);
    for (const hold of holdsOfMine) expect(await hold.release()).toBe(true);
    expect(await make(second, name).tryAcquire()).not.toBeNull();
  });

  test("unexpected replies from all endpoints grant nothing", async () => {
    const endpoints = store.endpoints.map(({ name, dialect }) => ({ name, dialect, send: async () => "OK" }));
    const redlock = new Redlock({ endpoints, wait: 0 });
    const error = await rejection(new ReentrantLock(redlock, newResource("reentrant")).tryAcquire());
    expect(error).toBeInstanceOf(QuorumError);
    expect((error as QuorumError).votes.map(({ cause }) => cause?.kind)).toContain("malformed");
  });

  test("costs the requests and commands that are documented", async () => {
    const name = newResource("reentrant");
    const { redlock, links, events } = visitor(store, { wait: 0 });
    const lock = new ReentrantLock(redlock, name);
    const cost = () => {
      const costs = store.endpoints.map((_, index) => store.cost(index));
      return [sumOf(costs.map(({ requests }) => requests)), sumOf(costs.map(({ billed }) => billed))];
    };
    const costOf = async (work: () => Promise<unknown>) => {
      const [requests, billed] = cost() as [number, number];
      await work();
      await allArrived(links);
      return cost().map((sum, index) => (sum - [requests, billed][index]!) / count);
    };
    await costOf(() => new ReentrantLock(redlock, newResource("reentrant")).acquire());
    let hold!: Hold;
    const taken = await costOf(async () => {
      hold = await lock.acquire();
    });
    expect(taken).toEqual([1, 7]);
    expect(await costOf(() => hold.extend())).toEqual([1, 7]);
    expect(await costOf(() => hold.verify())).toEqual([1, 3]);
    expect(await costOf(() => new ReentrantLock(redlock, name).tryAcquire())).toEqual([1, 4]);
    expect(await costOf(() => hold.release())).toEqual([1, 5]);
    // Events carry what was known at the time of the result: with one endpoint everything.
    if (count > 1) return;
    for (const [type, commands] of Object.entries({ acquired: 7, extended: 7, contended: 4, released: 5 })) {
      expect(events.filter((event) => event.type === type).at(-1)).toMatchObject({ requests: 1, commands });
    }
  });

  test("`await using` releases it, and autoExtend keeps it until then", async () => {
    const name = newResource("reentrant");
    const auto = visitor(store);
    const lock = make(auto, name, { ttl: paced(500), autoExtend: true });
    {
      await using hold = await lock.acquire();
      await until(() => auto.events.some(({ type }) => type === "extended"), "an extension");
      expect([hold.signal.aborted, await hold.verify()]).toEqual([false, true]);
    }
    expect(sumOf(await holds(name))).toBe(0);
  });

  test("names, prefixes and locks are separate", async () => {
    const name = newResource("reentrant");
    const names = [name, `${name}:0`, `{${name}}`];
    for (const other of names) expect(await make(first, other).tryAcquire()).not.toBeNull();
    expect(await make(first, name, { prefix: "other" }).tryAcquire()).not.toBeNull();
    expect(await first.redlock.tryAcquire(name)).not.toBeNull();
    for (const other of names) expect(await make(first, other).tryAcquire()).toBeNull();
  });
});
