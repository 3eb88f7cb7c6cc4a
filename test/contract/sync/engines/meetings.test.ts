import { expect, test } from "vitest";
import { keyOf } from "../../../../src/redis/keys.ts";
import { CountDownLatch, LimitMismatchError, type OnceContext, once } from "../../../../src/sync/index.ts";
import { newResource } from "../../../support/local-endpoints.ts";
import { isSettled, rejection } from "../../../support/outcomes.ts";
import { allArrived, type Client, clientOf, onEach } from "../../../support/stores.ts";
import { until } from "../../../support/until.ts";
import { unreachable } from "../every-call.ts";
import { onStores } from "../stand.ts";

// A latch and once: what can differ by engine, number of endpoints and dialect.

onStores([1, 2, 3, 5], [3], (at) => {
  test("a latch opens with the last arrival, counts each id once, and stays open", async () => {
    const { first, second } = at;
    const name = newResource("latch");
    const latch = ({ redlock }: Client, count = 3) => new CountDownLatch(redlock, name, { count });
    const waiting = clientOf(at.store);
    const opened = latch(waiting).wait({ wait: Infinity });
    const states = [];
    for (const id of ["1", "true", "1"]) {
      states.push(await latch(first).arrive(id));
      await allArrived(first.links);
    }
    const before = waiting.links[0]!.sent.length;
    await until(() => waiting.links[0]!.sent.length > before + 2, "looks at the latch");
    expect(await isSettled(opened)).toBe(false);
    expect(await rejection(latch(second, 4).inspect())).toBeInstanceOf(LimitMismatchError);
    states.push(await latch(first).arrive("[1]"));
    await opened;
    expect(states).toEqual([
      { open: false, arrived: 1, remaining: 2 },
      { open: false, arrived: 2, remaining: 1 },
      { open: false, arrived: 2, remaining: 1 },
      { open: true, arrived: 3, remaining: 0 },
    ]);
    expect((await latch(second).arrive("late")).open).toBe(true);
  });

  test("of replicas that call at the same moment one runs, for an interval that the endpoints keep", async () => {
    const name = newResource("nightly");
    const runs: OnceContext[] = [];
    const outcomes = await Promise.all(
      Array.from({ length: 5 }, (_, index) => {
        const own = clientOf(at.store);
        // Each request is executed twice.
        for (const link of own.links) link.fate = () => "twice";
        return once(own.redlock, name, { every: 600_000 }, (turn) => runs.push(turn) && index);
      }),
    );
    expect(runs).toHaveLength(1);
    expect(runs[0]!.fence).toBeGreaterThan(0);
    const values = outcomes.flatMap((outcome) => (outcome.ran ? [outcome.value] : []));
    expect(values).toEqual([outcomes.findIndex(({ ran }) => ran)]);
    for (const outcome of outcomes) {
      if (outcome.ran) continue;
      expect(outcome.retryAfter).toBeGreaterThan(300_000);
      expect(outcome.retryAfter).toBeLessThanOrEqual(600_000);
    }
    expect((await once(at.second.redlock, name, { every: 600_000 }, unreachable)).ran).toBe(false);
    const key = keyOf("redlock", "once", name);
    await until(async () => {
      const ttls = (await onEach(at.store, "PTTL", key)) as number[];
      return ttls.every((ms) => ms > 300_000 && ms <= 600_000);
    });
  });
});
