import { afterAll, beforeAll, expect, test } from "vitest";
import { InProgressError } from "../../../src/idempotency/index.ts";
import { eachEngine } from "../../support/each-engine.ts";
import { freshKey } from "../../support/fresh-key.ts";
import { gate } from "../../support/link.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import { allArrived, clientOf, type OpenStore, storesOf, ttlsOf } from "../../support/stores.ts";
import { until } from "../../support/until.ts";

const backoff = { min: 5, max: 60 };

eachEngine(storesOf([1, 3], [3]))("a run whose platform stops it, on $title", ({ open }) => {
  let store: OpenStore;
  beforeAll(async () => {
    store = await open();
    await clientOf(store).idempotency.run(freshKey(), () => 0);
  });
  afterAll(() => store.close());

  test("leaves its key for one timeout after its deadline, and not for its lease", async () => {
    const key = freshKey();
    const killed = clientOf(store, { lease: 30_000, timeout: 1_000, wait: 10_000, backoff });
    const began = gate();
    // Never ends: the platform stops the code.
    const options = { deadline: Date.now() + 1_000 };
    void killed.idempotency
      .run(key, options, () => {
        began.open();
        return new Promise(() => undefined);
      })
      .catch(() => undefined);
    await began.passed;
    await allArrived(killed.links);
    for (const ttl of await ttlsOf(store, key)) expect(ttl).toBeLessThanOrEqual(2_000);
    for (const link of killed.links) link.fate = () => "lost";
    const successor = clientOf(store, { backoff });
    const { error } = await outcomeOf(successor.idempotency.run(key, () => expect.unreachable("busy")));
    expect(error).toBeInstanceOf(InProgressError);
    // Well below the lease, with time for a busy machine.
    const outcome = await successor.idempotency.run(key, { wait: 12_000 }, () => "taken over");
    expect(outcome).toEqual({ status: "executed", value: "taken over" });
  });

  test("has renewed its lease no further than that", async () => {
    const key = freshKey();
    const lease = 1_200;
    const timeout = 300;
    const client = clientOf(store, { lease, timeout, wait: 10_000, backoff });
    const end = gate();
    const started = gate<number>();
    const deadline = Date.now() + 1_700;
    const run = outcomeOf(
      client.idempotency.run(key, { deadline }, async ({ signal }) => {
        started.open(0);
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        await end.passed;
        throw new Error("stopped");
      }),
    );
    await Promise.race([started.passed, run]);
    // Renewed at least once, and each time for no more than what is left and one timeout.
    let renewed = false;
    await until(async () => {
      const left = deadline - Date.now();
      const ttls = await ttlsOf(store, key);
      const beyond = Math.max(...ttls) - left;
      // What the look itself takes: it was measured before.
      expect(beyond).toBeLessThanOrEqual(timeout + 1_000);
      renewed ||= client.links[0]!.sent.length > 1;
      return left < 0;
    });
    expect(renewed).toBe(true);
    end.open();
    await run;
  });

  test("has time to store a result that comes at the last moment", async () => {
    const key = freshKey();
    const { idempotency, links } = clientOf(store, { lease: 30_000, wait: 10_000, backoff });
    const outcome = await idempotency.run(key, { deadline: Date.now() + 800 }, async ({ signal }) => {
      await allArrived(links);
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      return "just in time";
    });
    expect(outcome).toEqual({ status: "executed", value: "just in time" });
    expect((await idempotency.run(key, () => expect.unreachable("stored"))).value).toBe("just in time");
  });
});
