import { describe, expect, test } from "vitest";
import { LockLostError, type QuorumError } from "../../../src/index.ts";
import {
  CountDownLatch,
  CyclicBarrier,
  forceRelease,
  LimitMismatchError,
  Mailbox,
  once,
  type SynchronizerKind,
} from "../../../src/sync/index.ts";
import { rejection } from "../../support/outcomes.ts";
import { delays, type VirtualClient, watch } from "../../support/virtual-client.ts";
import { newWorld, sentBy } from "../../support/virtual-sync.ts";
import { holders } from "./holders.ts";

// What an operator frees, in virtual time: what is gone then, what is remembered, and for how long.

const day = 86_400_000;
const start = 1_700_000_000_000;

const kinds: readonly SynchronizerKind[] = [
  "Semaphore",
  "ReadWriteLock",
  "FairLock",
  "ReentrantLock",
  "CountDownLatch",
  "CyclicBarrier",
  "once",
  "Mailbox",
];

describe.each(kinds)("%s", (kind) => {
  test("that is not in use: there is nothing to free, and nothing is stored", async () => {
    const { client, ttls } = newWorld();
    const own = client();
    expect(await forceRelease(own.redlock, kind, "n")).toBe(false);
    expect([sentBy(own), ttls()]).toEqual([[1, 1, 1], {}]);
  });

  test("is freed where a quorum answers, after all have answered", async () => {
    const { runtime, client } = newWorld();
    const { slow } = delays(runtime);
    const own = client();
    own.links[0]!.fate = () => "refused";
    own.links[2]!.fate = () => slow(60);
    const freed = watch(forceRelease(own.redlock, kind, "n"));
    await runtime.advance(59);
    expect(freed.settled).toBe(false);
    await runtime.advance(1);
    expect(freed.value).toBe(false);
  });

  test("with too few answers is a QuorumError that shows them", async () => {
    const own = newWorld().client();
    for (const link of own.links.slice(1)) link.fate = () => "refused";
    const { votes } = (await rejection(forceRelease(own.redlock, kind, "n"))) as QuorumError;
    expect(votes.map(({ outcome }) => outcome === "error")).toEqual([false, true, true]);
  });
});

describe.each(holders)("$title", ({ kind, keys, acquire, another }) => {
  test("that is held is free for the one who waits, and its holder learns of the loss", async () => {
    const { runtime, client, ttls, atOnce } = newWorld();
    const hold = await acquire(client().redlock, "n");
    expect(Object.keys(ttls())).toEqual(keys.map((key) => `redlock:${key}:{n}`));
    const next = watch(another(client().redlock, "n"));
    await runtime.advance(5);
    expect(await atOnce(forceRelease(client().redlock, kind, "n"))).toBe(true);
    await runtime.advance(5);
    expect(await rejection(hold.extend())).toBeInstanceOf(LockLostError);
    const after = [await hold.verify(), await hold.release(), await next.value!.verify()];
    expect(after).toEqual([false, false, true]);
  });
});

test("what counts as something to free is also a queue or a waiting writer alone, but not the memory of an interval that is over", async () => {
  for (const [kind, key, had] of [
    ["FairLock", "queue", true],
    ["ReadWriteLock", "writers", true],
    ["once", "once", true],
    ["once", "once-end", false],
    ["once", "once-fence", false],
  ] as const) {
    const { client, each } = newWorld();
    each("SET", key, "n", "something", "PX", 5_000);
    expect(await forceRelease(client().redlock, kind, "n"), key).toBe(had);
    expect(each("EXISTS", key, "n")).toEqual(new Array(3).fill(key === "once-fence" ? 1 : 0));
  }
});

test("a semaphore whose largest limit no endpoint knows any more is freed as a whole", async () => {
  const { client, at, ttls } = newWorld();
  for (const [index, slot] of [0, 4, 999].entries()) at([index], "SET", `slot:${slot}`, "n", "somebody");
  const operator = client();
  expect(await forceRelease(operator.redlock, "Semaphore", "n")).toBe(true);
  expect([ttls(0), ttls(1), ttls(2)]).toEqual([{}, {}, {}]);
  expect(await forceRelease(operator.redlock, "Semaphore", "n")).toBe(false);
});

test("once runs again, with a larger fence, and no late confirmation brings the interval back", async () => {
  const { client, each, atOnce, endpoints } = newWorld();
  const own = client();
  const run = () => atOnce(once(own.redlock, "n", { every: 60_000 }, ({ fence }) => fence));
  expect(await run()).toEqual({ ran: true, value: start });
  expect((await run()).ran).toBe(false);
  expect(await forceRelease(client().redlock, "once", "n")).toBe(true);
  expect(await forceRelease(client().redlock, "once", "n")).toBe(false);
  const confirmation = own.links[0]!.sent.find((command) => command.includes("extend"))!;
  for (const endpoint of endpoints) await endpoint.send(confirmation, new AbortController().signal);
  expect(each("EXISTS", "once", "n")).toEqual([0, 0, 0]);
  expect(await run()).toEqual({ ran: true, value: start + 1 });
});

test("a mailbox loses its turn, and no message: the next turn has them all, and the one that was begun again", async () => {
  const { runtime, client, ttls } = newWorld();
  const mailbox = ({ redlock }: VirtualClient) => new Mailbox<string>(redlock, "n", { ttl: 1_000 });
  let signal: AbortSignal | undefined;
  const holding = watch(
    mailbox(client()).post({ id: "a", value: "a" }, async (messages, turn) => {
      signal = turn.signal;
      for await (const _ of messages)
        await new Promise((resolve) => signal?.addEventListener("abort", resolve));
    }),
  );
  await runtime.advance(1);
  await mailbox(client()).post({ id: "b", value: "b" }, () => expect.unreachable());
  expect(await forceRelease(client().redlock, "Mailbox", "n")).toBe(true);
  expect(await forceRelease(client().redlock, "Mailbox", "n")).toBe(false);
  expect(Object.keys(ttls())).toEqual(["redlock:mailbox-order:{n}", "redlock:mailbox-values:{n}"]);
  const handled: [string, number][] = [];
  const drained = watch(
    mailbox(client()).drain(async (messages) => {
      for await (const { value, attempt } of messages) handled.push([value, attempt]);
    }),
  );
  await runtime.advance(1_000);
  expect([drained.value, signal?.aborted]).toEqual([{ handled: 2, left: 0 }, true]);
  expect(handled).toEqual([
    ["a", 2],
    ["b", 1],
  ]);
  await runtime.advance(1_000);
  expect(holding.settled).toBe(true);
});

describe("a latch or barrier", () => {
  const latchOf = ({ redlock }: VirtualClient, count = 2, ttl = day) =>
    new CountDownLatch(redlock, "n", { count, ttl });

  test("is later after each reset, also within a ms", async () => {
    const { client, each } = newWorld();
    const epochs: unknown[] = [];
    for (const count of [2, 3, 4]) {
      await latchOf(client(), count).arrive("a");
      expect(await forceRelease(client().redlock, "CountDownLatch", "n")).toBe(true);
      epochs.push(String(each("HGET", "latch", "n", "g")[0]).slice(0, 18));
    }
    expect(epochs).toEqual([0, 1, 2].map((later) => `g2${String(start + later).padStart(16, "0")}`));
  });

  test("with a wrong count takes the right one then, and late requests do not count", async () => {
    const { client, endpoints, atOnce } = newWorld();
    const late = client();
    await latchOf(late, 5).arrive("a");
    const right = latchOf(client(), 2);
    expect(await rejection(right.arrive("a"))).toBeInstanceOf(LimitMismatchError);
    expect(await forceRelease(client().redlock, "CountDownLatch", "n")).toBe(true);
    for (const endpoint of endpoints)
      await endpoint.send(late.links[0]!.sent[0]!, new AbortController().signal);
    expect(await atOnce(right.inspect())).toEqual({ open: false, arrived: 0, remaining: 2 });
    expect(await atOnce(right.arrive("b"))).toEqual({ open: false, arrived: 1, remaining: 1 });
    expect(await atOnce(right.arrive("a"))).toMatchObject({ open: true });
    expect(await atOnce(latchOf(client(), 2).inspect())).toMatchObject({ open: true });
  });

  test("makes waiting parties arrive again, with a number that is greater by 2", async () => {
    const { runtime, client } = newWorld();
    const party = (id: string) => {
      const barrier = new CyclicBarrier(client().redlock, "n", { parties: 2 });
      return () => watch(barrier.arriveAndWait(id, { wait: 60_000 }));
    };
    const [a, b] = [party("a"), party("b")];
    const before = [a(), b()];
    await runtime.advance(30);
    const early = a();
    await runtime.advance(15);
    expect(await forceRelease(client().redlock, "CyclicBarrier", "n")).toBe(true);
    await runtime.advance(15);
    expect(early.settled).toBe(false);
    const late = b();
    await runtime.advance(20);
    expect([early.value, late.value]).toEqual([before[0]!.value! + 3, before[0]!.value! + 3]);
  });
});
