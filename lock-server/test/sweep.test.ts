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

test("keys are gone at their ms, and one alarm sweeps them", async () => {
  const { ask, alarms, fire, rows } = lockServer();
  const keys = ["a", "b", "c"];
  await ask(...keys.map((key) => ["SET", key, "v", "PX", 1_000]), ["SET", "later", "v", "PX", 3_600_000]);
  vi.advanceTimersByTime(999);
  expect(await ask(["EXISTS", ...keys])).toEqual([3]);
  vi.advanceTimersByTime(1);
  const replace = ["SET", "a", "w", "NX", "PX", 5];
  expect(await ask(["EXISTS", ...keys], replace, ["GET", "a"])).toEqual([0, "OK", "w"]);
  expect(alarms).toHaveLength(1);
  vi.setSystemTime(alarms[0]!);
  await fire();
  // For the key that is left, there is another alarm.
  expect([rows(), alarms.length]).toEqual([1, 2]);
});

test("an alarm that comes late, twice or after a restart deletes nothing that lives", async () => {
  const { ask, alarms, fire, restart, rows } = lockServer();
  await ask(["SET", "held", "v", "PX", 7_200_000], ["SET", "short", "v", "PX", 10], ["SET", "forever", "v"]);
  restart();
  expect(await ask(["SET", "more", "v", "PX", 7_200_000])).toEqual(["OK"]);
  expect(alarms).toHaveLength(1);
  vi.advanceTimersByTime(3_600_000);
  await fire();
  await fire();
  expect(await ask(["MGET", "held", "short", "more", "forever"])).toEqual([["v", null, "v", "v"]]);
  expect(rows()).toBe(3);
  vi.advanceTimersByTime(7_200_000);
  await fire();
  expect(rows()).toBe(1);
  // Nothing is left that will expire.
  const before = alarms.length;
  await fire();
  expect(alarms).toHaveLength(before);
});

test.each<[seen: (string | number)[], left: number]>([
  [["GET", "gone"], 0],
  [["DEL", "gone"], 0],
  [["PEXPIRE", "gone", 5_000], 0],
  [["PTTL", "gone"], 0],
  [["PTTL", "held"], 1],
])("if the clock is set back after %j, %i of two keys is there, also after a restart", async (seen, left) => {
  const { ask, restart } = lockServer();
  await ask(["SET", "gone", "v", "PX", 1_000], ["SET", "held", "v", "PX", 1_001]);
  vi.advanceTimersByTime(1_000);
  await ask(seen);
  vi.setSystemTime(1_800_000_000_000 - 60_000);
  restart();
  expect(await ask(["EXISTS", "gone"], ["PTTL", "held"])).toEqual([left, 61_001]);
});
