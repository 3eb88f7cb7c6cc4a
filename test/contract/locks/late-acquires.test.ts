import { describe, expect, test } from "vitest";
import { Idempotency } from "../../../src/idempotency/index.ts";
import type { Redlock } from "../../../src/index.ts";
import { Semaphore } from "../../../src/sync/index.ts";
import { until } from "../../support/until.ts";
import { oneClient, watch } from "../../support/virtual-client.ts";
import { newWorld } from "../../support/virtual-sync.ts";

// Operations that begin with acquire requests, which are executed late, in virtual time.

type Operation = (redlock: Redlock, name: string, options?: { signal: AbortSignal }) => Promise<unknown>;

const runOf =
  (maxAttempts: number, lock?: string): Operation =>
  (redlock, name, options = {} as { signal: AbortSignal }) => {
    const idempotency = new Idempotency(redlock, { lease: 60_000, maxAttempts });
    return lock === undefined
      ? idempotency.run(name, options, () => "done")
      : idempotency.run(name, { ...options, lock }, () => "done");
  };
const operations: readonly (readonly [string, Operation])[] = [
  ["a lock", (redlock, name, options) => redlock.acquire(name, options)],
  ["a fenced lock", (redlock, name, options) => redlock.acquire(name, { ...options, fencing: true })],
  ["a permit", (redlock, name, options) => new Semaphore(redlock, name, { limit: 1 }).acquire(options)],
  ["a key", runOf(1_000)],
  ["a counted key", runOf(1)],
  ["a key and locks", runOf(1, "a")],
];

describe.each([1, 3])("on %i endpoints", (count) => {
  test.each(operations)("an abort leaves nothing of %s", async (_, operation) => {
    const world = newWorld({ count });
    // A key that is not rolled back would live for a minute.
    const { redlock, links, events } = world.client({ ttl: 60_000, timeout: 1_000 });
    for (const link of links) link.fate = () => (link.sent.length === 1 ? world.late(500) : "delivered");
    const caller = new AbortController();
    const call = watch(operation(redlock, "n", { signal: caller.signal }));
    // Keys are hashed in real time.
    await until(() => links.every(({ sent }) => sent.length > 0), "the acquire requests");
    await world.runtime.advance(100);
    caller.abort();
    await world.runtime.advance(0);
    expect(call.error).toBe(caller.signal.reason);
    expect(call.error).toHaveProperty("name", "AbortError");
    await world.runtime.advance(1_500);
    const next = watch(operation(world.client({ wait: 0 }).redlock, "n"));
    await until(() => next.settled, "the next one");
    expect(next.error).toBe(undefined);
    expect(events.filter(({ type }) => type !== "notAcquired")).toEqual([]);
  });
});

test("a round that is cut short does not block the next one", async () => {
  const { redlock, links, ...world } = oneClient({ timeout: 1_000, wait: 4_000 });
  world.put("r", [0]);
  links[1]!.fate = ([name]) => (name === "SET" ? world.late(60) : "delivered");
  const call = watch(redlock.acquire("r"));
  await world.runtime.advance(4_000);
  expect(await call.value!.release()).toBe(true);
});
