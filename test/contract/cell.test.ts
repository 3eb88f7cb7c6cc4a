import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Ask } from "../../src/endpoints/ask.ts";
import { type Cell, type CellAnswer, canDelete, claim, end, keep } from "../../src/redis/cell.ts";
import { askOf } from "../support/ask.ts";
import { newResource } from "../support/local-endpoints.ts";
import { type OpenStore, storesOf } from "../support/stores.ts";

// What the one script does in each state of its keys, when it is executed twice, and when its claim has ended; and that its
// replies count the commands.

const places = ["record", "lock", "void", "counter1", "counter2"] as const;
type Place = (typeof places)[number];
/** What is stored where. Afterwards `!`: with the ttl that the operation has given. */
type State = Partial<Record<Place, string | number>>;

const token = `t${"1".repeat(32)}`;
/** ms that everything lives that is there before, and that an operation gives. */
const [before, given] = [3_000_000, 600_000];
const next = { values: ["done"], ttl: given };

type Operation = (call: Ask, cell: Cell) => Promise<CellAnswer>;
const withoutCounters = (cell: Cell): Cell => ({ ...cell, counters: undefined });
/** The same keys as several locks have them. */
const several = ({ values, ...cell }: Cell): Cell => ({ ...cell, value: "own" });
const operations = {
  claim: (call, cell) => claim(call, cell, given),
  prove: (call, cell) => {
    canDelete.set(call.endpoint, false);
    return claim(call, cell, given);
  },
  extend: (call, cell) => keep(call, withoutCounters(cell), given),
  "extend with counters": (call, cell) => keep(call, cell, given),
  raise: (call, cell) => keep(call, cell, 0),
  check: (call, cell) => keep(call, withoutCounters(cell), 0),
  swap: (call, cell) => keep(call, withoutCounters(cell), given, "next"),
  free: (call, cell) => end(call, withoutCounters(cell)),
  complete: (call, cell) => end(call, withoutCounters(cell), next),
  "complete without a tombstone": (call, cell) => end(call, { ...cell, tombstone: undefined }, next),
  "put several locks back": (call, cell) =>
    end(call, several(withoutCounters(cell)), { values: ["done", "done"], ttl: given }),
  "free several locks": (call, cell) => end(call, several(withoutCounters(cell))),
} satisfies Record<string, Operation>;

const own: State = { record: "own", lock: token };
const locks: State = { record: "own", lock: "own" };
const renewed: State = { record: "own!", lock: `${token}!` };
const drawn = (fence: number): State => ({ counter1: `${fence}!`, counter2: `${fence}!` });
const ended: State = { void: `${token}!` };
const looked: State = { void: "1!" };
const granted = { outcome: "granted" };
const fence = (drawn: number) => ({ outcome: "granted", fence: drawn });
/** Of the record, whose value is not the token, no time is returned. */
const heldRecord = { outcome: "held", other: "other", retryAfter: -2 };
const heldLock = { outcome: "held", other: "other", retryAfter: before, blockedBy: 1 };
const isVoid = { outcome: "held", other: "", retryAfter: -2 };
const lost = (other = "") => ({ outcome: "lost", other });
const gone = { outcome: "lost" };
/** The record was there, and its lock was not. */
const lockGone = { outcome: "lost", blockedBy: 1 };
/** An error without its keys. */
const noFence = "has foreign data: rename or delete it, or set another prefix";

const rows: readonly [
  operation: keyof typeof operations,
  before: State,
  answer: object | string,
  after?: State,
  /** The answer to a second execution, where it is another one. */
  again?: object,
][] = [
  ["claim", {}, fence(5_000), { ...renewed, ...drawn(5_000) }],
  ["claim", own, fence(5_000), { ...own, ...drawn(5_000) }],
  ["claim", { record: "own" }, fence(5_000), { ...renewed, record: "own", ...drawn(5_000) }],
  ["claim", { record: "other" }, heldRecord],
  ["claim", { lock: "other" }, heldLock],
  ["claim", { record: "own", lock: "other" }, heldLock],
  ["claim", { void: 1 }, isVoid],
  ["claim", { ...own, void: 1 }, isVoid],
  ["claim", { counter1: 7, counter2: 4_999 }, fence(5_000), { ...renewed, ...drawn(5_000) }],
  ["claim", { counter1: 5_000 }, fence(5_001), { ...renewed, ...drawn(5_001) }],
  ["claim", { counter2: 9_000 }, fence(9_001), { ...renewed, ...drawn(9_001) }],
  ["claim", { ...own, counter1: 9_000 }, fence(9_000), { ...own, ...drawn(9_000) }],
  ["claim", { counter2: "x" }, noFence],
  ["prove", {}, fence(5_000), { ...renewed, ...drawn(5_000) }],
  ["prove", { counter1: 5_000 }, fence(5_001), { ...renewed, ...drawn(5_001) }, fence(5_001)],
  ["prove", { lock: "other" }, heldLock],
  ["prove", { void: 1 }, isVoid],
  ["extend", own, granted, renewed],
  ["extend", {}, lost()],
  ["extend", { record: "own" }, lost()],
  ["extend", { ...own, lock: "other" }, lost("other")],
  ["extend", { ...own, void: 1 }, lost()],
  ["extend with counters", own, fence(5_000), { ...renewed, ...drawn(5_000) }],
  ["extend with counters", { ...own, counter1: 7 }, fence(5_000), { ...renewed, ...drawn(5_000) }],
  ["extend with counters", { ...own, counter2: 9_000 }, fence(9_000), { ...renewed, ...drawn(9_000) }],
  ["extend with counters", { ...own, counter2: "x" }, noFence],
  ["raise", { ...own, counter1: 9_000 }, fence(9_000), { ...own, ...drawn(9_000) }],
  ["raise", { lock: token }, lost()],
  ["check", own, granted, own],
  ["check", { record: "other", lock: token }, lost("other")],
  ["swap", own, granted, { record: "next!", lock: "next!" }],
  ["swap", { ...own, void: 1 }, lost()],
  ["free", own, granted, ended],
  ["free", { ...own, lock: "other" }, lockGone, { lock: "other", ...looked }, gone],
  ["free", { lock: token }, gone, looked],
  ["free", { record: "other", lock: "other" }, gone, { record: "other", lock: "other", ...looked }],
  ["free", {}, gone, looked],
  // Ended before, and then claimed by a late `SET … NX`, which sees no tombstone.
  ["free", { lock: token, void: token }, granted, { void: token }],
  ["complete", own, granted, { record: "done!", ...ended }],
  ["complete", { ...own, record: "other" }, gone, { record: "other", ...looked }],
  ["complete without a tombstone", own, granted, { record: "done!" }, gone],
  ["free several locks", locks, granted, { void: "own!" }],
  ["put several locks back", locks, granted, { record: "done!", lock: "done!", void: "own!" }],
  ["free several locks", { record: "own" }, lockGone, looked, gone],
];

describe.each(storesOf([1]))("the script of cells, on $title", ({ open }) => {
  let store: OpenStore;
  beforeAll(async () => {
    store = await open();
  });
  afterAll(() => store.close());

  function newCell() {
    const name = newResource();
    const keys = places.map((place) => `${place}:{${name}}`);
    const [record, lock, tombstone, ...counters] = keys as [string, string, string, string, string];
    const cell: Cell = {
      keys: [record, lock],
      value: token,
      values: ["own", token],
      tombstone,
      counters: { keys: counters, least: 5_000, retention: given },
    };
    const put = async (state: State) => {
      for (const [index, place] of places.entries()) {
        const value = state[place];
        if (value !== undefined) await store.execute(0, ["SET", keys[index]!, value, "PX", before]);
      }
    };
    const stored = async () => {
      const values = (await store.execute(0, ["MGET", ...keys])) as (string | null)[];
      const state: Record<string, string> = {};
      for (const [index, value] of values.entries()) {
        if (value === null) continue;
        const ttl = (await store.execute(0, ["PTTL", keys[index]!])) as number;
        state[places[index]!] = ttl > given ? value : `${value}!`;
      }
      return state;
    };
    return { cell, put, stored };
  }

  /** The answer to one execution, or its error. */
  async function answerOf(operation: Operation, cell: Cell): Promise<object | string> {
    const call = askOf(store.endpoints[0]!);
    const answer = await operation(call, cell).catch(({ message }: Error) =>
      message.replace(/^one of the keys .* has/, "has"),
    );
    if (typeof answer === "string" || answer.retryAfter === undefined || answer.retryAfter < 0) return answer;
    // The time until it expires, by a real clock.
    return { ...answer, retryAfter: answer.retryAfter > given ? before : answer.retryAfter };
  }

  const textOf = (state: State) =>
    Object.fromEntries(Object.entries(state).map(([key, is]) => [key, `${is}`]));

  test.each(rows.map((row) => [row[0], JSON.stringify(row[1]), row] as const))(
    "%s where there is %s",
    async (...[, , row]) => {
      const [name, state, answer, after = state, again = answer] = row;
      const { cell, put, stored } = newCell();
      await put(state);
      for (const expected of [answer, again]) {
        expect(await answerOf(operations[name], cell)).toEqual(expected);
        expect(await stored()).toEqual(textOf(after));
      }
    },
  );

  test("keeps a counter of the future until that is the past, and the retention", async () => {
    const { cell, put } = newCell();
    const future = Date.now() + 50 * before;
    await put({ counter2: future });
    expect(await answerOf(operations.claim, cell)).toEqual(fence(future + 1));
    for (const counter of cell.counters!.keys) {
      expect(await store.execute(0, ["PTTL", counter])).toBeGreaterThan(49 * before + given);
    }
  });

  test.each<keyof typeof operations>(["claim", "extend", "swap"])(
    "%s does nothing after the end of what it is for",
    async (name) => {
      const { cell, put, stored } = newCell();
      await put(own);
      await answerOf(operations.free, cell);
      const outcome = name === "claim" ? "held" : "lost";
      expect(await answerOf(operations[name], cell)).toMatchObject({ outcome });
      expect(await stored()).toEqual(ended);
    },
  );
});
