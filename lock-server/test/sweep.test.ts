import { afterEach, expect, test, vi } from "vitest";
import { LockServer } from "../src/index.ts";
import { objectStorage } from "./storage.ts";

// What expires, with a clock that the test sets: alarms that come late, twice or never, and clocks that jump.

afterEach(() => {
  vi.useRealTimers();
});

function lockServer() {
  vi.useFakeTimers({ now: 1_800_000_000_000, toFake: ["Date"] });
  const storage = objectStorage();
  const start = () => new LockServer({ storage });
  let server = start();
  return {
    alarms: storage.alarms,
    restart() {
      server = start();
    },
    /** The alarm fires. */
    async fire() {
      storage.clearAlarm();
      await server.alarm();
    },
    async ask(...commands: (string | number)[][]) {
      const body = JSON.stringify(commands);
      const answer = await server.fetch(new Request("https://o/", { method: "POST", body }));
      return ((await answer.json()) as { result: unknown }[]).map(({ result }) => result);
    },
    rows: () => storage.sql.exec("SELECT COUNT(*) AS count FROM entries").toArray()[0]!.count,
  };
}

test("10 000 keys that expire at once are gone at their ms, and swept by one alarm", async () => {
  const { ask, alarms, fire, rows } = lockServer();
  const keys = Array.from({ length: 10_000 }, (_, index) => `k${index}`);
  await ask(...keys.map((key) => ["SET", key, "v", "PX", 1_000]), ["SET", "later", "v", "PX", 3_600_000]);
  expect(alarms).toHaveLength(1);
  vi.advanceTimersByTime(999);
  expect(await ask(["EXISTS", ...keys])).toEqual([10_000]);
  vi.advanceTimersByTime(1);
  expect(await ask(["EXISTS", ...keys], ["SET", "k0", "w", "NX", "PX", 5], ["GET", "k0"])).toEqual([
    0,
    "OK",
    "w",
  ]);
  vi.setSystemTime(alarms[0]!);
  await fire();
  expect(rows()).toBe(1);
  // For what is left, there is another one.
  expect(alarms).toHaveLength(2);
});

test("an alarm that comes late, twice or after a restart deletes nothing that lives", async () => {
  const { ask, alarms, fire, restart, rows } = lockServer();
  await ask(["SET", "held", "v", "PX", 7_200_000], ["SET", "short", "v", "PX", 10], ["SET", "for ever", "v"]);
  restart();
  expect(await ask(["SET", "more", "v", "PX", 7_200_000])).toEqual(["OK"]);
  expect(alarms).toHaveLength(1);
  vi.advanceTimersByTime(3_600_000);
  await fire();
  await fire();
  expect(await ask(["MGET", "held", "short", "more", "for ever"])).toEqual([["v", null, "v", "v"]]);
  expect(rows()).toBe(3);
  vi.advanceTimersByTime(7_200_000);
  await fire();
  expect(rows()).toBe(1);
  // Nothing is left that will expire.
  const before = alarms.length;
  await fire();
  expect(alarms).toHaveLength(before);
});

test("a clock that is set back lets keys live longer, and never shorter", async () => {
  const { ask, fire } = lockServer();
  await ask(["SET", "held", "v", "PX", 1_000]);
  vi.setSystemTime(1_800_000_000_000 - 60_000);
  await fire();
  expect(await ask(["PTTL", "held"], ["SET", "held", "w", "NX", "PX", 1_000])).toEqual([61_000, null]);
});

test.each<[reader: string, seen: (string | number)[], gone: unknown]>([
  ["GET", ["GET", "key"], null],
  ["DEL", ["DEL", "key"], 0],
  ["PEXPIRE", ["PEXPIRE", "key", 5_000], 0],
  ["PTTL", ["PTTL", "key"], -2],
])(
  "what %s has told to be gone stays gone when the clock is set back, also after a restart",
  async (_, seen, gone) => {
    const { ask, restart } = lockServer();
    await ask(["SET", "key", "v", "PX", 1_000]);
    vi.advanceTimersByTime(1_000);
    expect(await ask(seen)).toEqual([gone]);
    vi.setSystemTime(1_800_000_000_000 - 60_000);
    restart();
    expect(await ask(["GET", "key"], ["SET", "key", "w", "NX"])).toEqual([null, "OK"]);
  },
);
