import { expect, test } from "vitest";
import { memoryEndpoint } from "../../local/src/memory/index.ts";
import { withIdempotency } from "../../src/http/index.ts";
import { forgetKey, Idempotency, singleFlight } from "../../src/idempotency/index.ts";
import { Redlock } from "../../src/index.ts";
import { forceRelease as freeLock, inspect } from "../../src/inspect/index.ts";
import {
  CountDownLatch,
  CyclicBarrier,
  debounce,
  forceRelease,
  once,
  type SynchronizerKind,
} from "../../src/sync/index.ts";
import { pubSub } from "../../src/wake-up/index.ts";
import { heldTurn } from "../support/held-turn.ts";
import { type Link, link } from "../support/link.ts";
import { holders } from "./sync/holders.ts";

// Every feature of the package under one name at the same time: none may see, free or wake another.

/** Begins to use the name. What it returns ends that, and tells whether everything was as it was left. */
type Begin = (redlock: Redlock, name: string) => Promise<() => Promise<unknown>>;

interface Feature {
  readonly begin: Begin;
  /** What an operator does. Returns whether there was anything. */
  readonly free: (redlock: Redlock, name: string) => Promise<boolean>;
}

const never = () => expect.unreachable("it has run");
const holding =
  (
    acquire: (redlock: Redlock, name: string) => Promise<{ release(): Promise<boolean | undefined> }>,
  ): Begin =>
  async (redlock, name) => {
    const hold = await acquire(redlock, name);
    return () => hold.release();
  };
const synchronizer = (kind: SynchronizerKind, begin: Begin): Feature => ({
  begin,
  free: (redlock, name) => forceRelease(redlock, kind, name),
});
const keyed = (kind: "run" | "http" | "flight", begin: Begin): Feature => ({
  begin,
  free: (redlock, name) => forgetKey(new Idempotency(redlock), name, { kind }),
});

const features: Readonly<Record<string, Feature>> = {
  lock: {
    begin: holding((redlock, name) => redlock.acquire(name, { fencing: true })),
    free: async (redlock, name) => {
      expect((await inspect(redlock, name)).held).toBe(true);
      return freeLock(redlock, name);
    },
  },
  // By their kinds: a read-write lock once.
  ...Object.fromEntries(holders.map(({ kind, acquire }) => [kind, synchronizer(kind, holding(acquire))])),
  latch: synchronizer("CountDownLatch", async (redlock, name) => {
    const latch = new CountDownLatch(redlock, name, { count: 2 });
    await latch.arrive("a");
    return async () => (await latch.arrive("b")).open;
  }),
  barrier: synchronizer("CyclicBarrier", async (redlock, name) => {
    const barrier = new CyclicBarrier(redlock, name, { parties: 2 });
    await barrier.arriveAndWait("a", { wait: 0 }).catch(() => undefined);
    return async () => {
      const [one, other] = await Promise.all(["a", "b"].map((id) => barrier.arriveAndWait(id)));
      return one === other;
    };
  }),
  once: synchronizer("once", async (redlock, name) => {
    expect(await once(redlock, name, { every: 60_000 }, () => 1)).toMatchObject({ ran: true });
    return async () => !(await once(redlock, name, { every: 60_000 }, never)).ran;
  }),
  mailbox: synchronizer("Mailbox", async (redlock, name) => {
    const { posted, handled, end } = await heldTurn(redlock, name);
    return async () => {
      end();
      return (await posted).status === "handled" && handled.length === 1;
    };
  }),
  debounce: {
    async begin(redlock, name) {
      await debounce(redlock, name, { window: 1 }, () => 1);
      return async () => (await debounce(redlock, name, { window: 1 }, () => 1)).ran;
    },
    free: async () => true,
  },
  run: keyed("run", async (redlock, name) => {
    const idempotency = new Idempotency(redlock, { maxAttempts: 2 });
    expect(await idempotency.run(name, () => null)).toEqual({ status: "executed", value: null });
    return async () => (await idempotency.run(name, never)).value === null;
  }),
  request: keyed("http", async (redlock, name) => {
    const answer = async (text: string) => {
      const request = new Request("https://a.example", {
        method: "POST",
        headers: { "idempotency-key": name },
      });
      return (await withIdempotency(request, () => new Response(text), { redlock })).text();
    };
    expect(await answer("first")).toBe("first");
    return async () => (await answer("second")) === "first";
  }),
  flight: keyed("flight", async (redlock, name) => {
    const options = { ttl: 60_000 };
    expect(await singleFlight(redlock, name, options, () => "value")).toBe("value");
    return async () => (await singleFlight(redlock, name, options, never)) === "value";
  }),
};

test("no two features share a key or a channel, and each leaves the others as they are", async () => {
  const endpoints = [1, 2, 3].map((number) => memoryEndpoint({ name: `e${number}` }));
  const links: Record<string, Link[]> = {};
  const begun = await Promise.all(
    Object.entries(features).map(async ([feature, { begin, free }]) => {
      links[feature] = endpoints.map(link);
      const redlock = new Redlock({ endpoints: links[feature], wakeUp: pubSub, ttl: 60_000 });
      return {
        feature,
        free: () => free(redlock, "two"),
        ends: [await begin(redlock, "one"), await begin(redlock, "two")],
      };
    }),
  );
  for (const { feature, ends } of begun) expect([feature, await ends[0]!()]).toEqual([feature, true]);
  for (const { feature, free } of begun) expect([feature, await free()]).toEqual([feature, true]);
  const used = Object.entries(links).flatMap(([feature, each]) => {
    const words = each.flatMap(({ sent }) => sent.flat().map(String));
    return [...new Set(words.filter((word) => word.startsWith("redlock:")))].map((word) => [word, feature]);
  });
  const shared = used.filter(([word, feature]) =>
    used.some(([other, by]) => other === word && by !== feature),
  );
  expect(shared).toEqual([]);
  // Keys and channels were found at all.
  for (const feature of Object.keys(features)) {
    expect(used.filter(([, by]) => by === feature).length).toBeGreaterThan(0);
  }
});
