import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { InProgressError, LeaseLostError } from "../../../src/idempotency/index.ts";
import { parseRecord } from "../../../src/idempotency/record.ts";
import { eachEngine, isMissing } from "../../support/each-engine.ts";
import { freshKey } from "../../support/fresh-key.ts";
import { type Gate, gate, type Link } from "../../support/link.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import {
  allArrived,
  type Client,
  clientOf,
  type OpenStore,
  recordName,
  recordsOf,
  storesOf,
  ttlsOf,
} from "../../support/stores.ts";
import { until } from "../../support/until.ts";

const backoff = { min: 5, max: 60 };
// With `wait` a begin that a busy machine made too slow is tried again.
const shortLease = { lease: 400, wait: 10_000, backoff };

/** A run whose handler has begun, and ends when the test says how. */
interface Running {
  readonly outcome: Promise<{ value?: unknown; error?: unknown }>;
  readonly signal: AbortSignal;
  readonly end: Gate<unknown>;
  readonly began: number;
}

async function begin(client: Client, key: string): Promise<Running> {
  const started = gate<AbortSignal>();
  const end = gate<unknown>();
  const began = performance.now();
  const outcome = outcomeOf(
    client.idempotency.run(key, async ({ signal }) => {
      started.open(signal);
      const value = await end.passed;
      if (value instanceof Error) throw value;
      return value;
    }),
  );
  const signal = await Promise.race([started.passed, outcome.then(({ error }) => Promise.reject(error))]);
  await allArrived(client.links);
  return { outcome, signal: signal as AbortSignal, end, began };
}

function cutOff(links: readonly Link[]): void {
  for (const link of links) link.fate = () => "lost";
}

function reconnect(links: readonly Link[]): void {
  for (const link of links) link.fate = () => "delivered";
}

const gone = async (store: OpenStore, key: string) =>
  (await recordsOf(store, key)).every((text) => text === null);

eachEngine(storesOf([1, 3], [3]), describe.concurrent)("a lease on $title", ({ open, count }) => {
  let store: OpenStore;
  beforeAll(async () => {
    store = await open();
    // The first request of all is the slowest.
    await clientOf(store).idempotency.run(freshKey(), () => 0);
  });
  afterAll(() => store.close());

  /** A run that has lost its lease while it was cut off, and reaches its endpoints again. */
  async function expired(key: string): Promise<Running> {
    const client = clientOf(store, shortLease);
    const run = await begin(client, key);
    cutOff(client.links);
    await until(() => gone(store, key));
    await until(() => run.signal.aborted);
    reconnect(client.links);
    return run;
  }

  test("that cannot be renewed aborts the handler's signal before it ends", async () => {
    const key = freshKey();
    // A wide allowance for drift: how much before the end is the clock's affair, not a busy machine's.
    const client = clientOf(store, { lease: 1_000, wait: 10_000, backoff }, { driftFactor: 0.4 });
    const run = await begin(client, key);
    cutOff(client.links);
    const ttls = new Promise<number[]>((resolve) => {
      run.signal.addEventListener("abort", () => resolve(ttlsOf(store, key)));
    });
    expect(Math.min(...(await ttls))).toBeGreaterThan(0);
    expect(run.signal.reason).toBeInstanceOf(LeaseLostError);
    expect(run.signal.reason).toMatchObject({ code: "LEASE_LOST", key });
    reconnect(client.links);
    run.end.open(new Error("stopped"));
    expect((await run.outcome).error).toEqual(new Error("stopped"));
  });

  test("of a dead process keeps others away until it ends, and no longer", async () => {
    const key = freshKey();
    const dead = clientOf(store, { lease: 1_000, wait: 10_000, backoff });
    await begin(dead, key);
    cutOff(dead.links);
    const successor = clientOf(store, { lease: 1_000, backoff });
    const { error } = await outcomeOf(successor.idempotency.run(key, () => expect.unreachable("busy")));
    expect(error).toBeInstanceOf(InProgressError);
    const [before] = await recordsOf(store, key);
    let during: (string | null)[] = [];
    const outcome = await successor.idempotency.run(key, { wait: 15_000 }, async () => {
      during = await recordsOf(store, key);
      return "taken over";
    });
    expect(outcome).toEqual({ status: "executed", value: "taken over" });
    // One that heard of the dead run a little later may still have it.
    const left = during.filter((text) => text === before).length;
    expect(left).toBeLessThan(Math.floor(count / 2) + 1);
  });

  test("that expired is completed nevertheless when no other run has begun", async () => {
    const key = freshKey();
    const run = await expired(key);
    expect(run.signal.reason).toBeInstanceOf(LeaseLostError);
    run.end.open("late but alone");
    expect(await run.outcome).toEqual({ value: { status: "executed", value: "late but alone" } });
    const again = await clientOf(store).idempotency.run(key, () => expect.unreachable("complete"));
    expect(again).toEqual({ status: "replayed", value: "late but alone" });
  });

  test("that was taken over: a late result is refused while the other still runs", async () => {
    const key = freshKey();
    const late = await expired(key);
    const other = await begin(clientOf(store), key);
    const record = await recordsOf(store, key);
    late.end.open("too late");
    const { error } = await late.outcome;
    expect(error).toBeInstanceOf(LeaseLostError);
    expect(error).toMatchObject({ code: "LEASE_LOST", key });
    expect(await recordsOf(store, key)).toEqual(record);
    other.end.open("the other's");
    expect(await other.outcome).toEqual({ value: { status: "executed", value: "the other's" } });
    const again = await clientOf(store).idempotency.run(key, () => expect.unreachable("complete"));
    expect(again).toEqual({ status: "replayed", value: "the other's" });
  });

  test("that was taken over: a late result is refused after the other completed", async () => {
    const key = freshKey();
    const late = await expired(key);
    await clientOf(store).idempotency.run(key, () => "the other's");
    const record = await recordsOf(store, key);
    late.end.open("too late");
    expect((await late.outcome).error).toBeInstanceOf(LeaseLostError);
    expect(await recordsOf(store, key)).toEqual(record);
  });

  test.each(["runs", "has completed"])(
    "that was taken over: a late failure frees nothing while the other %s",
    async (state) => {
      const key = freshKey();
      const late = await expired(key);
      const other = await begin(clientOf(store), key);
      if (state === "has completed") {
        other.end.open("the other's");
        await other.outcome;
      }
      const record = await recordsOf(store, key);
      const failure = new Error("failed in the end");
      late.end.open(failure);
      expect((await late.outcome).error).toBe(failure);
      expect(await recordsOf(store, key)).toEqual(record);
      other.end.open("the other's");
      expect(await other.outcome).toEqual({ value: { status: "executed", value: "the other's" } });
    },
  );

  test("is kept until the result is stored, however long the handler ran", async () => {
    const key = freshKey();
    const lease = 1_500;
    const client = clientOf(store, { lease, wait: 10_000, backoff });
    const run = await begin(client, key);
    // Longer than a lease: what counts is the last renewal.
    await until(() => performance.now() - run.began > 1.2 * lease);
    let failures = 0;
    for (const link of client.links) {
      link.fate = () => {
        failures += 1;
        // Two attempts at every endpoint fail; each may take a second command.
        return failures <= 2 * count ? "refused" : "delivered";
      };
    }
    run.end.open("stored late");
    expect(await run.outcome).toEqual({ value: { status: "executed", value: "stored late" } });
    await until(async () =>
      (await recordsOf(store, key)).every((text) => parseRecord(text)?.state === "complete"),
    );
  });

  test("that another's record has replaced aborts the handler's signal at the next renewal, the last", async () => {
    const key = freshKey();
    const lease = 1_500;
    const client = clientOf(store, { lease, wait: 10_000, backoff });
    const run = await begin(client, key);
    const name = await recordName(key);
    const others = "P1 t0 1 -";
    for (let index = 0; index < count; index += 1) {
      await store.execute(index, ["SET", name, others, "PX", 60_000]);
    }
    const sent = client.links.map((link) => link.sent.length);
    await until(() => run.signal.aborted);
    // The renewal noticed it, not the local clock.
    expect(String(run.signal.reason)).toMatch(/LeaseLostError: .*gone from a quorum/);
    const next = performance.now() + lease;
    await until(() => performance.now() > next);
    // One may have been on its way before.
    for (const [index, link] of client.links.entries())
      expect(link.sent.length - sent[index]!).toBeLessThan(3);
    run.end.open("too late");
    expect((await run.outcome).error).toBeInstanceOf(LeaseLostError);
    expect(await recordsOf(store, key)).toEqual(new Array(count).fill(others));
  });

  test("that cannot be renewed is tried again with pauses", async () => {
    const key = freshKey();
    const client = clientOf(store, { lease: 2_000, wait: 10_000, backoff: { min: 200, max: 200 } });
    const run = await begin(client, key);
    const sent = client.links[0]!.sent.length;
    for (const link of client.links) link.fate = () => "refused";
    await until(() => run.signal.aborted);
    // Half of the lease has time for six tries 200 ms apart. Where the next pause would outlast it, one more comes early.
    const tries = client.links[0]!.sent.length - sent;
    expect(tries).toBeGreaterThanOrEqual(2);
    expect(tries).toBeLessThanOrEqual(7);
    reconnect(client.links);
    run.end.open(new Error("stopped"));
    await run.outcome;
  });

  test("ends at maxHold, so that a stuck handler does not keep its key", async () => {
    const key = freshKey();
    const stuck = await begin(clientOf(store, { ...shortLease, maxHold: 600 }), key);
    const outcome = await clientOf(store, { wait: 15_000, backoff }).idempotency.run(key, () => "freed");
    expect(outcome).toEqual({ status: "executed", value: "freed" });
    await until(() => stuck.signal.aborted);
    expect(stuck.signal.reason).toBeInstanceOf(LeaseLostError);
    stuck.end.open(undefined);
    expect((await stuck.outcome).error).toBeInstanceOf(LeaseLostError);
  });
});

eachEngine(storesOf([1, 3], [3]), describe.concurrent)("a result on $title", ({ open }) => {
  test("is forgotten when its retention ends: the key runs again", async ({ onTestFinished }) => {
    const store = await open();
    onTestFinished(() => store.close());
    const key = freshKey();
    const { idempotency } = clientOf(store, { ...shortLease, retention: 700, maxAttempts: 1 });
    let runs = 0;
    expect(await idempotency.run(key, () => ++runs)).toEqual({ status: "executed", value: 1 });
    for (const ttl of await ttlsOf(store, key)) expect(ttl <= 700 && ttl !== -1).toBe(true);
    await until(() => gone(store, key));
    expect(await idempotency.run(key, () => ++runs)).toEqual({ status: "executed", value: 2 });
  });
});

eachEngine(storesOf([3]), describe.concurrent)(
  "a take-over that one endpoint has not seen on $title",
  ({ open }) => {
    let store: OpenStore;
    beforeAll(async () => {
      store = await open();
    });
    afterAll(() => store.close());

    async function takenOver(key: string) {
      const late = clientOf(store, shortLease);
      const run = await begin(late, key);
      cutOff(late.links);
      await until(() => gone(store, key));
      await until(() => run.signal.aborted);
      reconnect(late.links);
      const winner = clientOf(store, { backoff });
      winner.links[0]!.fate = () => "refused";
      const other = await begin(winner, key);
      return { run, other, winner };
    }

    test("a late result there is returned to no caller while the other run is under way", async () => {
      const key = freshKey();
      const { run, other, winner } = await takenOver(key);
      const [nothing, ...pending] = await recordsOf(store, key);
      expect(nothing).toBe(null);
      run.end.open("too late");
      expect((await run.outcome).error).toBeInstanceOf(LeaseLostError);
      expect((await recordsOf(store, key)).slice(1)).toEqual(pending);
      const third = await outcomeOf(clientOf(store).idempotency.run(key, () => expect.unreachable("busy")));
      expect(third.error).toBeInstanceOf(InProgressError);
      reconnect(winner.links);
      other.end.open("the other's");
      await other.outcome;
      const again = await clientOf(store).idempotency.run(key, () => expect.unreachable("complete"));
      expect(again).toEqual({ status: "replayed", value: "the other's" });
      await until(async () => new Set(await recordsOf(store, key)).size === 1);
    });

    test("a late result that the winner finds there is replaced by the winner's", async () => {
      const key = freshKey();
      const { run, other } = await takenOver(key);
      other.end.open("the other's");
      await other.outcome;
      run.end.open("too late");
      expect((await run.outcome).error).toBeInstanceOf(LeaseLostError);
      for (let time = 0; time < 3; time += 1) {
        const again = await clientOf(store).idempotency.run(key, () => expect.unreachable("complete"));
        expect(again).toEqual({ status: "replayed", value: "the other's" });
      }
      // Those who replayed it have also written it where it was missing.
      await until(async () => new Set(await recordsOf(store, key)).size === 1);
    });
  },
);

// All stores at once, because it takes its time: leases long enough for a machine that is busy with other tests.
describe.concurrent("a lease is renewed", () => {
  test.for(storesOf([1], [3]))(
    "for as long as the handler runs on $title",
    async (each, { onTestFinished, skip }) => {
      skip(isMissing(each));
      const store = await each.open();
      onTestFinished(() => store.close());
      const key = freshKey();
      const lease = 2_500;
      const first = clientOf(store, { lease, backoff });
      const second = clientOf(store, { lease, backoff });
      const run = await begin(first, key);
      const record = await recordsOf(store, key);
      while (performance.now() - run.began < 3.1 * lease) {
        const { error } = await outcomeOf(second.idempotency.run(key, () => expect.unreachable("busy")));
        expect(error).toBeInstanceOf(InProgressError);
        const { retryAfter } = error as InProgressError;
        expect(retryAfter > 0 && retryAfter <= lease).toBe(true);
        for (const ttl of await ttlsOf(store, key)) expect(ttl).toBeLessThanOrEqual(lease);
        const next = performance.now() + lease / 10;
        await until(() => performance.now() > next);
      }
      expect(await recordsOf(store, key)).toEqual(record);
      expect(run.signal.aborted).toBe(false);
      // About two renewals a lease, in the middle of each: neither none nor a storm.
      const renewals = first.links[0]!.sent.length - 1;
      expect(renewals >= 3 && renewals <= 9).toBe(true);
      run.end.open("late");
      expect(await run.outcome).toEqual({ value: { status: "executed", value: "late" } });
    },
  );
});
