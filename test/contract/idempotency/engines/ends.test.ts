import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DeadKeyError, forgetKey, InProgressError, inspectKey } from "../../../../src/idempotency/index.ts";
import { eachEngine } from "../../../support/each-engine.ts";
import { freshKey } from "../../../support/fresh-key.ts";
import { gate } from "../../../support/link.ts";
import { outcomeOf } from "../../../support/outcomes.ts";
import { ownTime } from "../../../support/own-time.ts";
import {
  allArrived,
  type Client,
  clientOf,
  type OpenStore,
  recordName,
  recordsOf,
  storesOf,
  ttlsOf,
} from "../../../support/stores.ts";
import { until } from "../../../support/until.ts";

// What ends by itself: leases, results and processes.

const backoff = { min: 5, max: 60 };
const never = () => expect.unreachable("nothing may run");

eachEngine(storesOf([1, 3], [3]), describe.concurrent)("on $title", ({ open }) => {
  let store: OpenStore;
  beforeAll(async () => {
    store = await open();
    // The first request of all is the slowest.
    await clientOf(store).idempotency.run(freshKey(), { maxAttempts: 2 }, () => 0);
  });
  afterAll(() => store.close());

  const gone = async (key: string) => (await recordsOf(store, key)).every((text) => text === null);

  /** A run whose handler has begun. */
  async function begin({ idempotency, links }: Client, key: string, options: { maxAttempts?: number } = {}) {
    const started = gate<AbortSignal>();
    const end = gate<unknown>();
    const outcome = outcomeOf(
      idempotency.run<unknown>(key, options, ({ signal }) => {
        started.open(signal);
        return end.passed;
      }),
    );
    const signal = await Promise.race([started.passed, outcome.then(({ error }) => Promise.reject(error))]);
    await allArrived(links);
    return { outcome, end, signal: signal as AbortSignal };
  }

  /** A run whose process dies. */
  async function die(key: string, maxAttempts = 100): Promise<void> {
    const dying = clientOf(store, { lease: 600_000, backoff, wait: Infinity });
    await begin(dying, key, { maxAttempts });
    for (const link of dying.links) link.fate = () => "lost";
  }

  /** Sets when a record ends, on all endpoints. */
  async function endIn(key: string, ms: number): Promise<void> {
    const name = await recordName(key);
    await Promise.all(store.endpoints.map((_, index) => store.execute(index, ["PEXPIRE", name, ms])));
  }

  test("the lease of a dead process keeps others away until it ends, and no longer", async () => {
    const key = freshKey();
    await die(key);
    const successor = clientOf(store, { backoff });
    const { error } = await outcomeOf(successor.idempotency.run(key, never));
    expect(error).toBeInstanceOf(InProgressError);
    for (const ttl of await ttlsOf(store, key)) expect(ttl > 0 && ttl <= 600_000).toBe(true);
    await endIn(key, 50);
    const outcome = await successor.idempotency.run(key, { wait: Infinity }, () => "taken over");
    expect(outcome).toEqual({ status: "executed", value: "taken over" });
  });

  test("the lease of a run is renewed for as long as its handler runs", async () => {
    const key = freshKey();
    const time = ownTime();
    const client = clientOf(store, { lease: 200_000 }, { runtime: time });
    const { outcome, end, signal } = await begin(client, key);
    const record = await recordsOf(store, key);
    for (let renewal = 0; renewal < 2; renewal += 1) {
      await endIn(key, 50_000);
      await time.advance(100_000);
      const isRenewed = async () => (await ttlsOf(store, key)).every((ttl) => ttl > 50_000 && ttl <= 200_000);
      await until(isRenewed, "a renewal");
    }
    expect([await recordsOf(store, key), signal.aborted]).toEqual([record, false]);
    end.open("late");
    expect(await outcome).toEqual({ value: { status: "executed", value: "late" } });
  });

  test("a key is dead after as many runs without an end as are allowed, until it is forgotten", async () => {
    const key = freshKey();
    const { idempotency } = clientOf(store, { backoff, wait: Infinity });
    for (let time = 0; time < 2; time += 1) {
      await die(key, 2);
      await endIn(key, 1);
    }
    for (let time = 0; time < 2; time += 1) {
      const { error } = await outcomeOf(idempotency.run(key, { maxAttempts: 2 }, never));
      expect(error).toBeInstanceOf(DeadKeyError);
      expect(error).toMatchObject({ name: "DeadKeyError", code: "DEAD_KEY", key, attempts: 2 });
      expect(await gone(key)).toBe(true);
    }
    expect(await inspectKey(idempotency, key)).toMatchObject({ state: "none", attempts: 2 });
    expect(await forgetKey(idempotency, key)).toBe(true);
    expect(await inspectKey(idempotency, key)).toMatchObject({ state: "none", attempts: 0 });
    expect((await idempotency.run(key, { maxAttempts: 1 }, () => 1)).status).toBe("executed");
  });

  test("a result is forgotten when its retention ends: the key runs again", async () => {
    const key = freshKey();
    const { idempotency } = clientOf(store, { lease: 600_000, retention: 6_000_000 });
    let runs = 0;
    expect(await idempotency.run(key, () => ++runs)).toEqual({ status: "executed", value: 1 });
    // Not the lease, also at the endpoint that is the last to store it.
    const isStored = async () => (await ttlsOf(store, key)).every((ttl) => ttl > 600_000 && ttl <= 6_000_000);
    await until(isStored, "the retention");
    await endIn(key, 1);
    await until(() => gone(key));
    expect(await idempotency.run(key, () => ++runs)).toEqual({ status: "executed", value: 2 });
  });
});
