import { describe, expect, test } from "vitest";
import { LockHeldError, LockLostError } from "../../../../src/index.ts";
import {
  type Job,
  type SingletonContext,
  type SingletonMode,
  type SingletonOptions,
  type SingletonOutcome,
  singleton,
} from "../../../../src/sync/index.ts";
import { type VirtualClient, watch } from "../../../support/virtual-client.ts";
import { sentBy, newWorld as syncWorld } from "../../../support/virtual-sync.ts";
import { unreachable } from "../every-call.ts";

// Calls in virtual time: which of them runs, when, and what becomes of the others.

function newWorld() {
  const world = syncWorld();
  const { runtime } = world;
  const start = runtime.now();
  /** What the jobs did, with ms since the beginning. */
  const trail: string[] = [];
  const note = (what: string) => trail.push(`${runtime.now() - start} ${what}`);
  const contexts: SingletonContext[] = [];
  /** A job of so many ms that heeds its signal, unless it is deaf. */
  const job =
    (name: string, ms = 1_000, { deaf = false } = {}): Job<string> =>
    (context) => {
      contexts.push(context);
      note(`${name} begins`);
      return new Promise((resolve, reject) => {
        const cancel = runtime.timer(ms, () => {
          note(`${name} ends`);
          resolve(name);
        });
        context.signal.addEventListener("abort", () => {
          note(`${name} is told`);
          if (deaf) return;
          cancel();
          reject(context.signal.reason);
        });
      });
    };
  const call = <Mode extends SingletonMode>(
    mode: Mode,
    routine: Job<string>,
    { redlock }: VirtualClient = world.client(),
    options: Omit<Partial<SingletonOptions>, "mode"> = {},
  ) =>
    watch<SingletonOutcome<Mode, string>>(
      singleton(redlock, "n", { ttl: 1_000, ...options, mode } as SingletonOptions<Mode>, routine),
    );
  return { ...world, trail, contexts, job, call };
}

const nowhere = [null, null, null];
const ran = (value: string) => ({ settled: true, value: { ran: true, value } });

describe("skip", () => {
  test("runs, keeps the lock for as long, and lets others return at once", async () => {
    const { call, job, runtime, values, client } = newWorld();
    const first = call("skip", job("a", 5_000));
    await runtime.advance(4_900);
    const second = client();
    const skipped = call("skip", unreachable, second);
    await runtime.advance(0);
    expect(skipped).toEqual({ settled: true, value: { ran: false } });
    expect(sentBy(second)).toEqual([1, 1, 1]);
    await runtime.advance(100);
    expect([first, values("n")]).toEqual([ran("a"), nowhere]);
    const third = call("skip", job("b", 0));
    await runtime.advance(0);
    expect([third, runtime.pending]).toEqual([ran("b"), 0]);
  });

  test("fails where its lock is lost meanwhile", async () => {
    const { job, runtime, call, each } = newWorld();
    const deaf = call("skip", job("a", 2_000, { deaf: true }));
    await runtime.advance(100);
    each("DEL", "lock", "n");
    await runtime.advance(2_000);
    expect(deaf.error).toBeInstanceOf(LockLostError);
  });
});

test("coalesce runs the newest of those that wait, after the one that runs; the others name the next", async () => {
  const { call, job, runtime, trail, contexts, values } = newWorld();
  const calls = [call("coalesce", job("0", 500))];
  for (const name of ["1", "2", "3"]) {
    await runtime.advance(50);
    calls.push(call("coalesce", job(name)));
  }
  await runtime.advance(100);
  expect(calls.map(({ settled }) => settled)).toEqual([false, true, true, false]);
  await runtime.advance(2_000);
  expect([calls[0], calls[3]]).toEqual([ran("0"), ran("3")]);
  expect(trail.map((each) => each.replace(/^\d+ /, ""))).toEqual([
    "0 begins",
    "0 ends",
    "3 begins",
    "3 ends",
  ]);
  const [, last] = contexts;
  expect(calls[2]!.value).toEqual({ ran: false, replacedBy: last!.id, began: false });
  expect(calls[1]!.value).toMatchObject({ ran: false, began: false });
  expect(last!.fence).toBeGreaterThan(contexts[0]!.fence);
  expect([values("n"), runtime.pending]).toEqual([nowhere, 0]);
  expect(contexts[0]!.remaining()).toBeLessThanOrEqual(0);
});

describe("cancel", () => {
  test("tells the job that runs when its lock would be extended, and runs when it has ended", async () => {
    const { call, job, runtime, trail, contexts, values } = newWorld();
    const first = call("cancel", job("0", 60_000));
    await runtime.advance(5_100);
    const second = call("cancel", job("1"));
    await runtime.advance(3_000);
    const times = trail.map((each) => [Number(each.split(" ")[0]), each.replace(/^\d+ /, "")] as const);
    expect(times.map(([, what]) => what)).toEqual(["0 begins", "0 is told", "1 begins", "1 ends"]);
    expect(times[1]![0]).toBeLessThanOrEqual(5_600);
    expect(times[2]![0] - times[1]![0]).toBeLessThanOrEqual(20);
    expect(first.value).toEqual({ ran: false, replacedBy: contexts[1]!.id, began: true });
    expect([second, values("n"), runtime.pending]).toEqual([ran("1"), nowhere, 0]);
    expect(contexts[1]!.fence).toBeGreaterThan(contexts[0]!.fence);
    expect(contexts[0]!.signal.reason).toMatchObject({ name: "AbortError" });
  });

  test("passes on what a job returns or throws by itself, although it was told", async () => {
    for (const end of ["value", new Error("failed"), undefined]) {
      const { call, runtime, job } = newWorld();
      const first = call(
        "cancel",
        ({ signal }) =>
          new Promise<string>((resolve, reject) => {
            signal.addEventListener("abort", () => (end === "value" ? resolve(end) : reject(end)));
          }),
      );
      await runtime.advance(100);
      call("cancel", job("1", 10));
      await runtime.advance(1_000);
      const expected = end === "value" ? { value: { ran: true, value: end } } : { error: end };
      expect(first).toEqual({ settled: true, ...expected });
    }
  });

  test("keeps a job's lock while its looks for a newer call have no quorum", async () => {
    const { call, job, runtime, client } = newWorld();
    const own = client();
    const lone = call("cancel", job("0", 6_000), own);
    await runtime.advance(100);
    for (const link of own.links)
      link.fate = (command) => (String(command[3]).includes(":singleton:") ? "refused" : "delivered");
    await runtime.advance(6_000);
    expect(lone).toEqual(ran("0"));
  });

  test("waits for twice the ttl, unless told otherwise", async () => {
    const { call, runtime, put, client, each } = newWorld();
    put("n", [0, 1, 2]);
    const late = call("cancel", unreachable, client());
    const later = call("cancel", unreachable, client(), { wait: 0 });
    await runtime.advance(1_900);
    expect([late.value?.ran, later.error]).toEqual([false, expect.any(LockHeldError)]);
    const last = call("cancel", unreachable, client({ backoff: () => 100 }), { backoff: () => 100 });
    await runtime.advance(1_950);
    expect(last.settled).toBe(false);
    await runtime.advance(200);
    expect([last.error, each("EXISTS", "singleton", "n")]).toEqual([expect.any(LockHeldError), [0, 0, 0]]);
  });
});
