import { describe, expect, test } from "vitest";
import type { Redlock } from "../../../src/index.ts";
import {
  CountDownLatch,
  CyclicBarrier,
  debounce,
  type Hold,
  Mailbox,
  once,
  refreshOnce,
  type SingletonMode,
  singleton,
} from "../../../src/sync/index.ts";
import { heldTurn } from "../../support/held-turn.ts";
import { rejection } from "../../support/outcomes.ts";
import { newWorld } from "../../support/virtual-sync.ts";
import { parts } from "./every-call.ts";
import { holders } from "./holders.ts";

// What each call of a synchronizer costs an endpoint that has released a lock before: requests, and commands, those within
// scripts included. Every engine executes the same commands.

type Work = (redlock: Redlock) => Promise<unknown>;

let hold: Hold;
let turn: Awaited<ReturnType<typeof heldTurn>>;
const latch = (redlock: Redlock) => new CountDownLatch(redlock, "n", { count: 2 });
const arrive = (id: string) => (redlock: Redlock) => latch(redlock).arrive(id);
const meet = (id: string) => (redlock: Redlock) =>
  new CyclicBarrier(redlock, "n", { parties: 2 }).arriveAndWait(id, { wait: 0 });
const daily: Work = (redlock) => once(redlock, "n", { every: 600_000 }, () => 1);
const refresh = { ...parts, refresh: () => 1, write: () => true, wait: 0 };
const refreshed: Work = (redlock) => refreshOnce<unknown>(redlock, "n", refresh);
const job = (mode: SingletonMode) => (redlock: Redlock) => singleton(redlock, "n", { mode }, () => undefined);
const debounced: Work = (redlock) => debounce(redlock, "n", { window: 100 }, () => 1);
const post = (redlock: Redlock, id: string) =>
  new Mailbox(redlock, "n").post({ id, value: 1 }, async (messages) => {
    for await (const _ of messages);
  });

/** Calls, one after the other, and the requests and commands of each, by what a release of a plain lock costs. */
type Row = readonly [what: string, costs: (release: 1 | 3) => string, calls: readonly Work[]];

const rows: readonly Row[] = [
  ...holders.map(({ title, acquire, tryAnother, costs }): Row => {
    const begin = async (redlock: Redlock) => {
      hold = await acquire(redlock, "n");
    };
    return [
      `${title}: an acquire, an extension, a refusal and a release`,
      (release) => `1, ${costs(release).join("; 1, ")}`,
      [begin, () => hold.extend(), (redlock) => tryAnother(redlock, "n"), () => hold.release()],
    ];
  }),
  [
    "a latch: a look, arrivals, of which one comes again, and a wait",
    () => "1, 2; 1, 6; 1, 3; 2, 11; 1, 2",
    [
      (redlock) => latch(redlock).inspect(),
      ...["a", "a", "b"].map(arrive),
      (redlock) => latch(redlock).wait(),
    ],
  ],
  [
    "a barrier: a party that does not wait, and the last one",
    () => "2, 8; 3, 13",
    [(redlock) => rejection(meet("a")(redlock)), meet("b")],
  ],
  ["once: a run, and a refusal", () => "2, 10; 1, 3", [daily, daily]],
  [
    "debounce: a call alone, and two of a burst",
    () => "2, 9; 4, 17",
    [debounced, (redlock) => Promise.all([debounced(redlock), debounced(redlock)])],
  ],
  [
    "refreshOnce: a refresh, and a refusal while a lock is held",
    (release) => `2, ${5 + release}; 1, 1; 1, 3`,
    [refreshed, (redlock) => redlock.acquire("n"), (redlock) => rejection(refreshed(redlock))],
  ],
  [
    "singleton: skip, coalesce and cancel",
    (release) => `2, ${5 + release}; 4, ${14 + release}; 4, ${14 + release}`,
    (["skip", "coalesce", "cancel"] as const).map(job),
  ],
  [
    "a mailbox: a message alone, the first of a turn, one that is queued, and the end of the turn",
    () => "2, 20; 1, 11; 1, 9; 3, 21",
    [
      (redlock) => post(redlock, "a"),
      async (redlock) => {
        turn = await heldTurn(redlock, "n", "b");
      },
      (redlock) => post(redlock, "c"),
      () => {
        turn.end();
        return turn.posted;
      },
    ],
  ],
];

describe.each([
  ["redis", 3],
  ["upstash", 1],
] as const)("in the dialect %s", (dialect, release) => {
  test.each(rows)("%s", async (_, costs, calls) => {
    const { runtime, client, endpoints } = newWorld({ count: 1, dialect });
    const { redlock } = client();
    const { log } = endpoints[0]!;
    const spent: string[] = [];
    for (const call of calls) {
      // Messages of one ms take a round more.
      await runtime.advance(1);
      const before = log.length;
      await runtime.settle(call(redlock));
      const own = log.slice(before);
      spent.push(`${own.length}, ${own.reduce((sum, { billed }) => sum + billed, 0)}`);
    }
    expect(spent.join("; ")).toBe(costs(release));
  });
});
