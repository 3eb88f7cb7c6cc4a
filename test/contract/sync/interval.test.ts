import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Call } from "../../../src/endpoints/call.ts";
import { upstashFlag } from "../../../src/redis/script.ts";
import { systemRuntime } from "../../../src/runtime.ts";
import { intervalScript, intervalStrategy } from "../../../src/sync/internal/interval.ts";
import type { OpenStore } from "../../support/stores.ts";
import { until } from "../../support/until.ts";
import { stores } from "./stand.ts";

test("intervalScript has the hash of the text that each dialect sends", () => {
  const sha1 = (text: string) => createHash("sha1").update(text).digest("hex");
  const { source } = intervalScript;
  expect(intervalScript.sha).toEqual({ redis: sha1(source), upstash: sha1(upstashFlag + source) });
});

const [n1, n2] = ["1", "2"].map((digit) => `t${digit.repeat(32)}`) as [string, string];

describe.each(stores([1], [1]).filter(({ count }) => count === 1))("an interval on $title", ({ open }) => {
  let store: OpenStore;
  let names = 0;
  beforeAll(async () => {
    store = await open();
  });
  afterAll(() => store.close());

  /** An interval that nobody has used before, and what is done with it. */
  function place() {
    names += 1;
    const [key, end, fence, grave] = ["once", "once-end", "once-fence", "void"].map(
      (kind) => `redlock:${kind}:{${names}}`,
    ) as [string, string, string, string];
    const send = async (keys: string[], ...args: (string | number)[]): Promise<unknown[]> => {
      const { dialect } = store.endpoints[0]!;
      const text = (dialect === "upstash" ? upstashFlag : "") + intervalScript.source;
      const { signal } = new AbortController();
      return (await store.endpoints[0]!.send(
        ["EVAL", text, keys.length, ...keys, ...args],
        signal,
      )) as unknown[];
    };
    return {
      key,
      take: (value: string, ttl = 20_000, waited = 0) =>
        send([key, end, fence, `${grave}:${value}`], value, "acquire", ttl, waited),
      confirm: (value: string, every = 60_000, number = 1, drawn = 7) =>
        send([key, end, fence], value, "extend", every, number, drawn, 86_400_000),
      drop: (value: string, retention = 0) =>
        send([key, end, fence, ...(retention ? [`${grave}:${value}`] : [])], value, "release", retention),
      ttl: async (name = key) => Number(await store.execute(0, ["PTTL", name])),
      end: () => store.execute(0, ["GET", end]),
      fence: () => store.execute(0, ["GET", fence]),
      all: [key, end, fence],
    };
  }

  test("a refusal says whether a claim or a run is there, and how long it lasts", async () => {
    const { take, confirm } = place();
    expect((await take(n1))[0]).toBe(n1);
    const [, left, kind] = await take(n2);
    expect([kind, Number(left) > 15_000, Number(left) <= 20_000]).toEqual(["c", true, true]);
    expect((await confirm(n1))[0]).toBe(n1);
    const [, more, run] = await take(n2);
    expect([run, Number(more) > 55_000, Number(more) <= 60_000]).toEqual(["r", true, true]);
    expect((await confirm(n2))[0]).toBe(0);
  });

  test("a confirmation that comes again does not prolong the interval; the next one of its process does", async () => {
    const { take, confirm, ttl, key } = place();
    await take(n1);
    await confirm(n1, 60_000, 1);
    await store.execute(0, ["PEXPIRE", key, "30000"]);
    expect((await confirm(n1, 60_000, 1))[0]).toBe(n1);
    expect(await ttl()).toBeLessThanOrEqual(30_000);
    expect((await confirm(n1, 60_000, 2))[0]).toBe(n1);
    expect(await ttl()).toBeGreaterThan(55_000);
    await confirm(n1, 90_000, 1);
    expect(await ttl()).toBeLessThanOrEqual(60_000);
  });

  test("who called before the interval was over is refused when it is", async () => {
    const { take, confirm, ttl } = place();
    await take(n1);
    await confirm(n1, 50);
    await until(async () => (await ttl()) < 0, "the end of the interval");
    expect(await take(n2, 20_000, 600_000)).toEqual([0, 0, "r"]);
    expect((await take(n2))[0]).toBe(n2);
  });

  test("a run that is dropped has not begun, and the one before it was the last", async () => {
    const { take, confirm, drop, end, ttl } = place();
    await take(n1);
    await confirm(n1, 50);
    const before = String(await end()).split(":")[0];
    await until(async () => (await ttl()) < 0, "the end of the interval");
    await take(n2);
    await confirm(n2);
    expect((await drop(n2, 60_000))[0]).toBe(n2);
    expect(await end()).toBe(`${before}:${before}`);
    expect((await drop(n2, 60_000))[0]).toBe(0);
    // A late request of the same round, and a late confirmation.
    expect(await take(n2)).toEqual([0, 0, "c"]);
    expect((await confirm(n2))[0]).toBe(0);
    expect((await take(n1))[0]).toBe(n1);
  });

  test("the fence is the largest that was confirmed, and all keys expire", async () => {
    const { take, confirm, fence, ttl, all } = place();
    expect(String((await take(n1))[1])).toBe("0");
    await confirm(n1, 60_000, 1, 1_763_714_567_890);
    expect(await fence()).toBe("1763714567890");
    await confirm(n1, 60_000, 2, 5);
    expect(await fence()).toBe("1763714567890");
    for (const name of all) expect(await ttl(name)).toBeGreaterThan(0);
  });
});

describe("replies that the script cannot have made", () => {
  const told = (reply: unknown): Call => ({
    endpoint: { name: "e", dialect: "redis", exactReplies: true, send: async () => reply },
    signal: new AbortController().signal,
    cost: { requests: 0, commands: 0 },
  });
  const register = { keys: ["k"], value: n1 };
  const { acquire, extend, release } = intervalStrategy(systemRuntime, "redlock", "n");
  const nonsense = [null, "OK", 1, n1, [], [1], [n2, "0"], [0, "5", "r"], [0, 5], [0, -1, "r"], [0, 5, "x"]];

  test.each([...nonsense, [0], [n1], [n1, "x"]].map((reply) => [JSON.stringify(reply), reply]))(
    "%s to a take",
    async (_, reply) => {
      await expect(acquire!(told(reply), register, 10)).rejects.toThrow("unexpected reply");
    },
  );

  test.each([...nonsense.slice(0, 6)].map((reply) => [JSON.stringify(reply), reply]))(
    "%s to a confirmation and to a drop",
    async (_, reply) => {
      await expect(extend!(told(reply), register, 10)).rejects.toThrow("unexpected reply");
      await expect(release!(told(reply), register, 0)).rejects.toThrow("unexpected reply");
    },
  );

  test("and those that it makes", async () => {
    expect(await acquire!(told([n1, "7"]), register, 10)).toEqual({ outcome: "granted", fence: 7 });
    expect(await acquire!(told([n1, 0]), register, 10)).toEqual({ outcome: "granted", fence: 0 });
    expect(await acquire!(told([0, 5, "r"]), register, 10)).toMatchObject({ outcome: "held", hasRun: true });
    expect((await extend!(told([0]), register, 10)).outcome).toBe("lost");
    expect((await release!(told([n1]), register, 0)).outcome).toBe("granted");
  });
});
