import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { start } from "../../../../local/src/index.ts";
import { httpEndpoint } from "../../../../src/endpoints/http.ts";
import { QuorumError } from "../../../../src/errors.ts";
import {
  DeadKeyError,
  forgetKey,
  Idempotency,
  InProgressError,
  inspectKey,
  ResultUnavailableError,
} from "../../../../src/idempotency/index.ts";
import { parseRecord } from "../../../../src/idempotency/record.ts";
import { Redlock } from "../../../../src/redlock.ts";
import { eachEngine } from "../../../support/each-engine.ts";
import { freshKey } from "../../../support/fresh-key.ts";
import { gate } from "../../../support/link.ts";
import { outcomeOf } from "../../../support/outcomes.ts";
import { paced } from "../../../support/pace.ts";
import { bestEngine } from "../../../support/redis-servers.ts";
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

// What ends by itself: leases, results, processes and servers, with real waiting.

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
  async function die(key: string, lease: number, maxAttempts = 100): Promise<void> {
    const dying = clientOf(store, { lease, backoff, wait: 15_000 });
    await begin(dying, key, { maxAttempts });
    for (const link of dying.links) link.fate = () => "lost";
  }

  test("the lease of a dead process keeps others away until it ends, and no longer", async () => {
    const key = freshKey();
    await die(key, paced(1_000));
    const successor = clientOf(store, { backoff });
    const { error } = await outcomeOf(successor.idempotency.run(key, never));
    expect(error).toBeInstanceOf(InProgressError);
    const outcome = await successor.idempotency.run(key, { wait: 15_000 }, () => "taken over");
    expect(outcome).toEqual({ status: "executed", value: "taken over" });
  });

  test("the lease of a run is renewed for as long as its handler runs", async () => {
    const key = freshKey();
    const lease = paced(1_000);
    const client = clientOf(store, { lease, backoff, wait: 15_000 });
    const { outcome, end, signal } = await begin(client, key);
    const record = await recordsOf(store, key);
    await until(() => client.links[0]!.sent.length > 3, "renewals");
    for (const ttl of await ttlsOf(store, key)) expect(ttl > 0 && ttl <= lease).toBe(true);
    expect([await recordsOf(store, key), signal.aborted]).toEqual([record, false]);
    end.open("late");
    expect(await outcome).toEqual({ value: { status: "executed", value: "late" } });
  });

  test("a key is dead after as many runs without an end as are allowed, until it is forgotten", async () => {
    const key = freshKey();
    const { idempotency } = clientOf(store, { backoff, wait: 15_000 });
    for (let time = 0; time < 2; time += 1) await die(key, 300, 2);
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
    const { idempotency } = clientOf(store, { lease: 400, retention: 700, maxAttempts: 1, wait: 10_000 });
    let runs = 0;
    expect(await idempotency.run(key, () => ++runs)).toEqual({ status: "executed", value: 1 });
    for (const ttl of await ttlsOf(store, key)) expect(ttl <= 700 && ttl !== -1).toBe(true);
    await until(() => gone(key));
    expect(await idempotency.run(key, () => ++runs)).toEqual({ status: "executed", value: 2 });
  });
});

describe.concurrent("a server that is killed while the handler runs", () => {
  const engine = bestEngine;

  async function servers(count: number) {
    const local = await start({ count, engine });
    const endpoints = local.endpoints.map(({ url, token, name }) => httpEndpoint({ url, token, name }));
    const options = { lease: 60_000, timeout: 5_000, backoff };
    return { local, client: () => new Idempotency(new Redlock({ endpoints }), options) };
  }

  test.each(["kept", "lost"] as const)(
    "is one of three: the result stands, its memory %s",
    async (memory) => {
      const { local, client } = await servers(3);
      await using _ = local;
      const key = freshKey();
      const killed = local.endpoints[1]!;
      const outcome = await client().run(key, async () => {
        await killed.stop();
        return "done";
      });
      expect(outcome).toEqual({ status: "executed", value: "done" });
      const replayed = { status: "replayed", value: "done" };
      const never = () => expect.unreachable("it has been run");
      expect(await client().run(key, never)).toEqual(replayed);
      await killed.start({ memory });
      expect(await client().run(key, never)).toEqual(replayed);
      // Where it knows nothing of the run, the call that replays the result also writes it there.
      const name = await recordName(key);
      const states = async () =>
        parseRecord(await killed.execute(["GET", name]))?.state ?? (await client().run(key, never)).status;
      if (memory === "lost") await until(async () => (await states()) === "complete");
    },
  );

  test("is the only one: the value is returned, and stored when it comes back", async () => {
    const { local, client } = await servers(1);
    await using _ = local;
    const key = freshKey();
    const only = local.endpoints[0]!;
    const outcome = await client().run(key, { timeout: paced(500) }, async () => {
      await only.stop();
      return "done";
    });
    expect(outcome).toEqual({ status: "executed", value: "done", unstored: "no-quorum" });
    const down = await outcomeOf(client().run(key, () => expect.unreachable("the answers do not decide")));
    expect(down.error).toBeInstanceOf(QuorumError);
    await only.start();
    const name = await recordName(key);
    await until(async () => parseRecord(await only.execute(["GET", name]))?.state === "complete");
    expect((await client().run(key, () => "again")).value).toBe("done");
  });
});

test.each(["upstash", "redis"] as const)(
  "what a server takes no request for is run once, %s",
  async (dialect) => {
    // The server's own limit of 10 MB, which says so as Upstash does.
    await using local = await start({ count: 1, engine: "embedded" });
    const { url, token } = local.endpoints[0]!;
    const idempotency = new Idempotency(new Redlock({ endpoints: [httpEndpoint({ url, token, dialect })] }));
    const key = freshKey();
    expect((await idempotency.run(key, () => "x".repeat(11_000_000))).unstored).toBe("too-large");
    expect((await outcomeOf(idempotency.run(key, never))).error).toBeInstanceOf(ResultUnavailableError);
  },
);
