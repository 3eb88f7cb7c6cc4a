import { expect, test } from "vitest";
import { seededRandom } from "../../local/src/memory/seeded-random.ts";
import { Idempotency, singleFlight } from "../../src/idempotency/index.ts";
import type { Redlock } from "../../src/index.ts";
import {
  CountDownLatch,
  CyclicBarrier,
  debounce,
  FairLock,
  Mailbox,
  type MailboxHandler,
  once,
  ReadWriteLock,
  ReentrantLock,
  refreshOnce,
  Semaphore,
  singleton,
} from "../../src/sync/index.ts";
import { arrivalScript } from "../../src/sync/internal/arrival.lua.ts";
import { intervalScript } from "../../src/sync/internal/interval.lua.ts";
import type { Fate } from "../support/link.ts";
import { seeded } from "../support/seeded.ts";
import { until } from "../support/until.ts";
import { delays, watch } from "../support/virtual-client.ts";
import { syncWorld } from "../support/virtual-sync.ts";

// A timer that outlives its purpose keeps a process alive. Whatever a call was, however its requests ended and however it
// ended, it leaves none once what it has sent is answered or timed out.

interface Call {
  readonly redlock: Redlock;
  readonly signal: AbortSignal;
  /** What is done under the lock: takes a while, and may fail. */
  readonly work: () => Promise<string>;
}

const limits = { maxHold: 3_000 };
const held = async ({ work }: Call, acquiring: Promise<AsyncDisposable>) => {
  const hold = await acquiring;
  try {
    return await work();
  } finally {
    await hold[Symbol.asyncDispose]();
  }
};
const store = { read: () => "old", isFresh: () => false, write: () => true };

const mailbox = ({ redlock }: Call) => new Mailbox<string>(redlock, "n", limits);
const message = { id: "m", value: "v" };
const handling =
  ({ work }: Call): MailboxHandler<string> =>
  async (messages) => {
    for await (const _ of messages) await work();
  };

const calls: Record<string, (call: Call) => Promise<unknown>> = {
  using: ({ redlock, signal, work }) => redlock.using("n", { ...limits, signal }, work),
  fenced: (call) => held(call, call.redlock.acquire("n", { signal: call.signal, fencing: true })),
  extended: (call) => held(call, call.redlock.acquire("n", { ...limits, autoExtend: true })),
  run: ({ redlock, signal, work }) => new Idempotency(redlock, { lease: 1_000 }).run("n", { signal }, work),
  counted: ({ redlock, work }) => new Idempotency(redlock, { lease: 1_000, maxAttempts: 2 }).run("n", work),
  "run with lock": ({ redlock, signal, work }) =>
    new Idempotency(redlock, { lease: 1_000 }).run("n", { signal, lock: ["n"] }, work),
  singleFlight: ({ redlock, signal, work }) =>
    singleFlight(redlock, "n", { ttl: 500, lease: 1_000, signal }, work),
  once: ({ redlock, signal, work }) => once(redlock, "n", { every: 2_000, signal }, work),
  debounce: ({ redlock, signal, work }) => debounce(redlock, "n", { window: 200, signal }, work),
  skip: ({ redlock, signal, work }) => singleton(redlock, "n", { ...limits, mode: "skip", signal }, work),
  coalesce: ({ redlock, signal, work }) =>
    singleton(redlock, "n", { ...limits, mode: "coalesce", signal }, work),
  cancel: ({ redlock, signal, work }) => singleton(redlock, "n", { ...limits, mode: "cancel", signal }, work),
  refreshOnce: ({ redlock, signal, work }) =>
    refreshOnce(redlock, "n", { ...limits, ...store, signal, refresh: work }),
  Semaphore: (call) =>
    held(call, new Semaphore(call.redlock, "n", { limit: 1 }).acquire({ signal: call.signal })),
  ReadWriteLock: (call) =>
    held(call, new ReadWriteLock(call.redlock, "n").acquireWrite({ signal: call.signal })),
  FairLock: (call) => held(call, new FairLock(call.redlock, "n").acquire({ signal: call.signal })),
  ReentrantLock: (call) =>
    held(call, new ReentrantLock(call.redlock, "n", { owner: "o" }).acquire({ signal: call.signal })),
  CountDownLatch: ({ redlock, signal }) => new CountDownLatch(redlock, "n", { count: 2 }).wait({ signal }),
  CyclicBarrier: ({ redlock, signal }) =>
    new CyclicBarrier(redlock, "n", { parties: 2 }).arriveAndWait("a", { signal }),
  post: (call) => mailbox(call).post(message, handling(call), { signal: call.signal }),
  "two posts, one standing by": (call) =>
    Promise.allSettled([
      mailbox(call).post(message, handling(call)),
      mailbox(call).post({ id: "n", value: "w" }, handling(call), { standBy: true, signal: call.signal }),
    ]),
  drain: (call) => mailbox(call).drain(handling(call), { signal: call.signal }),
};

/** A client of three endpoints that fail now and then, and whose resource is sometimes held; its calls may be aborted. */
function newWorld(seed: number) {
  const random = seededRandom(seed);
  const pick = <Value>(values: readonly Value[]) => values[Math.floor(random() * values.length)]!;
  const world = syncWorld([arrivalScript, intervalScript]);
  const { runtime, client, put } = world;
  const { slow, late } = delays(runtime);
  const { redlock, links } = client({ ttl: 1_000, wait: pick([0, 300, 2_000]) });
  const share = pick([0, 0.1, 0.4]);
  const faults: (() => Fate)[] = [
    () => "refused",
    () => "lost",
    () => "reply lost",
    () => slow(20 + 100 * random()),
    () => late(20 + 100 * random()),
  ];
  for (const link of links) link.fate = () => (random() < share ? pick(faults)() : "delivered");
  if (random() < 0.3) put("n", pick([[0], [0, 1, 2]]), "somebody-else", 700);
  const closed = new AbortController();
  if (random() < 0.3) runtime.timer(1 + 800 * random(), () => closed.abort(new Error("closed")));
  const work = async () => {
    await new Promise<void>((resolve) => void runtime.timer(pick([1, 10, 600, 1_500]), resolve));
    if (random() < 0.2) throw new Error("the work failed");
    return "done";
  };
  return { runtime, call: { redlock, work, signal: closed.signal } };
}

const { seed, numRuns } = seeded(6);

test.each(Object.keys(calls))(`%s (seed ${seed})`, async (name) => {
  for (let own = seed; own < seed + numRuns; own += 1) {
    const { runtime, call } = newWorld(own);
    const watched = watch(calls[name]!(call));
    while (!watched.settled) {
      // Keys are hashed in real time.
      await until(() => watched.settled || runtime.pending > 0, `a request of seed ${own}`);
      await runtime.advance(10);
    }
    // Until the last requests and their rollbacks have timed out, and the caller's own timers are over.
    await runtime.advance(1_000);
    // Storing goes on within the lease.
    if (Object(watched.value).unstored === "no-quorum") await runtime.advance(1_000);
    expect(runtime.pending, `seed ${own}`).toBe(0);
  }
});
