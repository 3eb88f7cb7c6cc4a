import { expect, test } from "vitest";
import { seededRandom } from "../../local/src/memory/seeded-random.ts";
import { Idempotency, singleFlight } from "../../src/idempotency/index.ts";
import type { Redlock } from "../../src/index.ts";
import type { Fate } from "../support/link.ts";
import { seeded } from "../support/seeded.ts";
import { until } from "../support/until.ts";
import { delays, watch } from "../support/virtual-client.ts";
import { newWorld } from "../support/virtual-sync.ts";
import { everyCall } from "./sync/every-call.ts";

// A timer that outlives its purpose keeps a process alive. Whatever a call was, however its requests ended and however it
// ended, it leaves none once what it has sent is answered or timed out.

interface Call {
  readonly redlock: Redlock;
  readonly signal: AbortSignal;
  /** What is done under the lock: takes a while, and may fail. */
  readonly work: () => Promise<string>;
}

const holding = async ({ work }: Call, acquiring: Promise<unknown>) => {
  const hold = await acquiring;
  if (typeof hold !== "object" || hold === null || !(Symbol.asyncDispose in hold)) return hold;
  try {
    return await work();
  } finally {
    await (hold as AsyncDisposable)[Symbol.asyncDispose]();
  }
};
const leased = { lease: 1_000 };

const calls: Record<string, (call: Call) => Promise<unknown>> = {
  using: ({ redlock, signal, work }) => redlock.using("n", { signal }, work),
  fenced: (call) => holding(call, call.redlock.acquire("n", { signal: call.signal, fencing: true })),
  extended: (call) => holding(call, call.redlock.acquire("n", { autoExtend: true })),
  run: ({ redlock, signal, work }) => new Idempotency(redlock, leased).run("n", { signal }, work),
  counted: ({ redlock, work }) => new Idempotency(redlock, { ...leased, maxAttempts: 2 }).run("n", work),
  "run with lock": ({ redlock, signal, work }) =>
    new Idempotency(redlock, leased).run("n", { signal, lock: ["n"] }, work),
  singleFlight: ({ redlock, signal, work }) =>
    singleFlight(redlock, "n", { ...leased, ttl: 500, signal }, work),
  "a post that stands by": ({ redlock, signal, work }) =>
    Promise.allSettled([
      everyCall["Mailbox.post"]!(redlock, {} as never, work),
      everyCall["Mailbox.post"]!(redlock, { standBy: true, signal } as never, work),
    ]),
};
for (const [name, call] of Object.entries(everyCall)) {
  calls[name] = (given) => holding(given, call(given.redlock, { signal: given.signal } as never, given.work));
}

/** A client of three endpoints that fail now and then, and whose resource is sometimes held; its calls may be aborted. */
function stage(seed: number) {
  const random = seededRandom(seed);
  const pick = <Value>(values: readonly Value[]) => values[Math.floor(random() * values.length)]!;
  const world = newWorld();
  const { runtime, client, put } = world;
  const { slow, late } = delays(runtime);
  const { redlock, links } = client({ ttl: 1_000, maxHold: 3_000, wait: pick([0, 300, 2_000]) });
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
    const { runtime, call } = stage(own);
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
