import { expect, test } from "vitest";
import { Deadline } from "../../../../src/endpoints/deadline.ts";
import type { EndpointRequest } from "../../../../src/endpoints/endpoint-request.ts";
import { systemRuntime } from "../../../../src/runtime.ts";
import { intervalScript } from "../../../../src/sync/internal/interval.lua.ts";
import { intervalStrategy } from "../../../../src/sync/internal/interval.ts";
import { describeOnce } from "../../../support/sets.ts";
import { virtualWorld } from "../../../support/virtual-client.ts";

const [n1, n2] = ["1", "2"].map((digit) => `t${digit.repeat(32)}`) as [string, string];

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

  test("a confirmation that is repeated does not prolong the interval; the next one does", async () => {
    const { runtime, run, execute } = await newInterval();
    run(n1, "acquire", 20_000, 0);
    const confirm = (number: number) => {
      run(n1, "extend", 1_000, number, 7, 5_000);
      return execute("PTTL", "once");
    };
    expect(confirm(1)).toBe(1_000);
    await runtime.advance(400);
    expect([confirm(1), confirm(2), confirm(1)]).toEqual([600, 1_000, 1_000]);
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
