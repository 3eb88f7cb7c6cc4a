import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Deadline } from "../../../../src/endpoints/deadline.ts";
import type { EndpointRequest } from "../../../../src/endpoints/endpoint-request.ts";
import { textOf } from "../../../../src/redis/script.ts";
import { systemRuntime } from "../../../../src/runtime.ts";
import { intervalScript } from "../../../../src/sync/internal/interval.lua.ts";
import { intervalStrategy } from "../../../../src/sync/internal/interval.ts";
import { describeOnce } from "../../../support/sets.ts";
import type { OpenStore } from "../../../support/stores.ts";
import { until } from "../../../support/until.ts";
import { virtualWorld } from "../../../support/virtual-client.ts";
import { stores } from "../stand.ts";

const [n1, n2] = ["1", "2"].map((digit) => `t${digit.repeat(32)}`) as [string, string];

describe.each(stores([1], [1]).filter(({ count }) => count === 1))("an interval on $title", ({ open }) => {
  let store: OpenStore;
  let names = 0;
  beforeAll(async () => {
    store = await open();
  });
  afterAll(() => store.close());

  /** An interval of its own, and the operations on it. */
  function newInterval() {
    names += 1;
    const [key, end, fence, tombstone] = ["once", "once-end", "once-fence", "void"].map(
      (kind) => `redlock:${kind}:{${names}}`,
    ) as [string, string, string, string];
    const send = async (keys: string[], ...args: (string | number)[]): Promise<unknown[]> => {
      const { dialect } = store.endpoints[0]!;
      const text = textOf(intervalScript.source, dialect);
      const { signal } = new AbortController();
      return (await store.endpoints[0]!.send(
        ["EVAL", text, keys.length, ...keys, ...args],
        signal,
      )) as unknown[];
    };
    return {
      key,
      acquire: (value: string, ttl = 20_000, waited = 0) =>
        send([key, end, fence, `${tombstone}:${value}`], value, "acquire", ttl, waited),
      confirm: (value: string, every = 60_000, number = 1, drawn = 7) =>
        send([key, end, fence], value, "extend", every, number, drawn, 86_400_000),
      release: (value: string, retention = 0) =>
        send([key, end, fence, ...(retention ? [`${tombstone}:${value}`] : [])], value, "release", retention),
      ttl: async (name = key) => Number(await store.execute(0, ["PTTL", name])),
      end: () => store.execute(0, ["GET", end]),
      fence: () => store.execute(0, ["GET", fence]),
      all: [key, end, fence],
    };
  }

  test("a refusal returns whether a claim or a run is there, and for how long", async () => {
    const { acquire, confirm } = newInterval();
    expect((await acquire(n1))[0]).toBe(n1);
    const [, remaining, kind] = await acquire(n2);
    expect([kind, Number(remaining) > 15_000, Number(remaining) <= 20_000]).toEqual(["c", true, true]);
    expect((await confirm(n1))[0]).toBe(n1);
    const [, more, run] = await acquire(n2);
    expect([run, Number(more) > 55_000, Number(more) <= 60_000]).toEqual(["r", true, true]);
    expect((await confirm(n2))[0]).toBe(0);
  });

  test("a repeated confirmation does not prolong the interval; the next one does", async () => {
    const { acquire, confirm, ttl, key } = newInterval();
    await acquire(n1);
    await confirm(n1, 60_000, 1);
    await store.execute(0, ["PEXPIRE", key, "30000"]);
    expect((await confirm(n1, 60_000, 1))[0]).toBe(n1);
    expect(await ttl()).toBeLessThanOrEqual(30_000);
    expect((await confirm(n1, 60_000, 2))[0]).toBe(n1);
    expect(await ttl()).toBeGreaterThan(55_000);
    await confirm(n1, 90_000, 1);
    expect(await ttl()).toBeLessThanOrEqual(60_000);
  });

  test("a run that is released has not begun, and the one before it was the last", async () => {
    const { acquire, confirm, release, end, ttl } = newInterval();
    await acquire(n1);
    await confirm(n1, 50);
    const before = String(await end()).split(":")[0];
    await until(async () => (await ttl()) < 0, "the end of the interval");
    await acquire(n2);
    await confirm(n2);
    expect((await release(n2, 60_000))[0]).toBe(n2);
    expect(await end()).toBe(`${before}:${before}`);
    expect((await release(n2, 60_000))[0]).toBe(0);
    // A late request of the same round, and a late confirmation.
    expect(await acquire(n2)).toEqual([0, 0, "c"]);
    expect((await confirm(n2))[0]).toBe(0);
    expect((await acquire(n1))[0]).toBe(n1);
  });

  test("the fence is the largest that was confirmed, and all keys expire", async () => {
    const { acquire, confirm, fence, ttl, all } = newInterval();
    expect(String((await acquire(n1))[1])).toBe("0");
    await confirm(n1, 60_000, 1, 1_763_714_567_890);
    expect(await fence()).toBe("1763714567890");
    await confirm(n1, 60_000, 2, 5);
    expect(await fence()).toBe("1763714567890");
    for (const name of all) expect(await ttl(name)).toBeGreaterThan(0);
  });
});

describeOnce("an interval in virtual time", () => {
  /** An interval of its own on one endpoint, whose clock shows 999 ms after a full second. */
  async function newInterval() {
    const { runtime, endpoints } = virtualWorld({ count: 1 });
    await runtime.advance(999);
    const [key, end, fence] = ["once", "end", "fence"];
    const execute = (...command: (string | number)[]) => endpoints[0]!.engine.execute(command);
    const run = (...args: (string | number)[]) =>
      execute("EVAL", intervalScript.source, 3, key!, end!, fence!, ...args);
    return { runtime, execute, run, end: () => execute("GET", "end") };
  }
  const start = 1_700_000_000_999;

  test("a release changes the ends only of a run of its own", async () => {
    const { runtime, run, end } = await newInterval();
    run(n1, "acquire", 20_000, 0);
    run(n1, "release", 0);
    expect(end()).toBe(null);
    run(n1, "acquire", 20_000, 0);
    run(n1, "extend", 1_000, 1, 7, 5_000);
    run(n2, "release", 0);
    expect(end()).toBe(`${start + 1_000}:0`);
    await runtime.advance(1_000);
    run(n2, "acquire", 20_000, 0);
    run(n2, "release", 0);
    expect(end()).toBe(`${start + 1_000}:0`);
  });

  test("a fence outlives the moment that it names, and else the interval", async () => {
    for (const [ahead, longer] of [
      [-5, 0],
      [30_000, 30_000],
    ] as const) {
      const { run, execute } = await newInterval();
      run(n1, "acquire", 20_000, 0);
      run(n1, "extend", 1_000, 1, start + ahead, 5_000);
      expect(["once", "end", "fence"].map((key) => execute("PTTL", key))).toEqual([
        1_000,
        6_000,
        6_000 + longer,
      ]);
    }
  });
});

describeOnce("replies that the script cannot have given", () => {
  const callWith = (reply: unknown): EndpointRequest => ({
    endpoint: { name: "e", dialect: "redis", exactReplies: true, send: async () => reply },
    deadline: new Deadline(),
    cost: { requests: 0, commands: 0 },
  });
  const cell = { keys: ["k"], value: n1 };
  const { acquire, extend, release } = intervalStrategy(systemRuntime, "redlock", "n");
  const nonsense = [
    null,
    "OK",
    1,
    n1,
    [],
    [1],
    [n2, "0"],
    [0, "5", "r"],
    [0, 5],
    [0, -1, "r"],
    [0, 5, "x"],
    [1, 5, "r"],
  ];

  test.each([...nonsense, [0], [n1], [n1, "x"]].map((reply) => [JSON.stringify(reply), reply]))(
    "%s to an acquire",
    async (_, reply) => {
      await expect(acquire!(callWith(reply), cell, 10)).rejects.toThrow("unexpected reply");
    },
  );

  test.each([...nonsense.slice(0, 6), [0, 5], [0, "x", "r"]].map((reply) => [JSON.stringify(reply), reply]))(
    "%s to a confirmation and to a release",
    async (_, reply) => {
      await expect(extend!(callWith(reply), cell, 10)).rejects.toThrow("unexpected reply");
      await expect(release!(callWith(reply), cell, 0, false)).rejects.toThrow("unexpected reply");
    },
  );

  test("and those that it gives", async () => {
    expect(await acquire!(callWith([n1, "7"]), cell, 10)).toEqual({ outcome: "granted", fence: 7 });
    expect(await acquire!(callWith([n1, 0]), cell, 10)).toEqual({ outcome: "granted", fence: 0 });
    expect(await acquire!(callWith([0, 5, "r"]), cell, 10)).toMatchObject({
      outcome: "held",
      hasRun: true,
    });
    expect((await extend!(callWith([0]), cell, 10)).outcome).toBe("lost");
    expect((await release!(callWith([n1]), cell, 0, false)).outcome).toBe("granted");
  });
});
