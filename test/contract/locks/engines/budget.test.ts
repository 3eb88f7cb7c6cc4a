import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { LockOptions, Redlock, RedlockEvent } from "../../../../src/index.ts";
import {
  type EndpointSet,
  type Local,
  newResource,
  openLocal,
  titled,
} from "../../../support/local-endpoints.ts";
import { engines } from "../../../support/redis-servers.ts";
import { until } from "../../../support/until.ts";

const sets: EndpointSet[] = [
  ...engines.flatMap((engine) =>
    (["redis", "upstash"] as const).flatMap((dialect) =>
      [1, 3].map((count) => ({ engine, count, dialect, via: "fetch" }) as const),
    ),
  ),
  { engine: engines[0]!, count: 1, dialect: "redis-8.4", via: "fetch" },
];

// The cost of an operation is part of the contract. It is counted where requests arrive, not where they are sent.
describe.each(titled(sets))("the command budget: %s", (_, set) => {
  const { count, dialect } = set;
  const scripted = dialect === "redis" ? 3 : 1;
  let local: Local;
  beforeAll(async () => {
    local = await openLocal(set);
  });
  beforeEach(() => local.reset());
  afterAll(() => local.close());

  /** The cost of `call` by endpoint: requests and billed commands. */
  async function costOf(requests: number, call: () => Promise<unknown>): Promise<number[][]> {
    for (const { log } of local.endpoints) log.reset();
    await call();
    await until(() => local.commands().length >= requests, "all requests");
    return local.endpoints.map(({ log }) => [log.requests, log.billed]);
  }
  const each = (requests: number, billed: number) => local.endpoints.map(() => [requests, billed]);

  test("acquire 1, extend and release 1 or 3, each in one request an endpoint", async () => {
    const redlock = local.redlock();
    const resource = newResource();
    const lock = await redlock.acquire(newResource());
    await lock.release();
    expect(await costOf(count, () => redlock.acquire(resource))).toEqual(each(1, 1));
    const held = await redlock.acquire(newResource());
    await until(() => local.commands().length === 2 * count, "all requests");
    expect(await costOf(count, () => held.extend())).toEqual(each(1, scripted));
    expect(await costOf(count, () => held.verify())).toEqual(each(1, 2));
    expect(await costOf(count, () => held.release())).toEqual(each(1, scripted));
  });

  test("contention costs n requests a round, and no rollback", async () => {
    const resource = newResource();
    const { redlock, events } = local.observed({ backoff: { min: 2, max: 5 } });
    await (await redlock.acquire(newResource())).release();
    await until(() => local.commands().length === 2 * count, "all requests");
    await redlock.acquire(resource);
    await until(async () => (await local.holders(resource)) === count, "all endpoints");
    expect(await costOf(count, () => redlock.tryAcquire(resource))).toEqual(each(1, 1));
    for (const { log } of local.endpoints) log.reset();
    await redlock.acquire(resource, { wait: 30 }).catch(() => undefined);
    const last = events.at(-1) as Extract<RedlockEvent, { type: "notAcquired" }>;
    await until(() => local.commands().length >= last.rounds * count, "all requests");
    expect(local.requests()).toBe(last.rounds * count);
    expect(new Set(local.commands())).toEqual(new Set(["SET"]));
  });

  /** A client that has seen that its endpoints release. */
  async function trusting(options?: LockOptions): Promise<Redlock> {
    const redlock = local.redlock(options);
    await (await redlock.acquire(newResource())).release();
    await until(() => local.commands().length === 2 * count, "all requests");
    return redlock;
  }

  test("fencing costs no additional request", async () => {
    const redlock = await trusting({ fencing: true });
    const resource = newResource();
    // The script itself, the read of all its keys, the clock, the key and the counter.
    expect(await costOf(count, () => redlock.acquire(resource))).toEqual(each(1, 5));
    // The script, the read, and the expiry of the lock that is held.
    expect(await costOf(count, () => redlock.tryAcquire(resource))).toEqual(each(1, 3));
  });

  test("several resources cost one request", async () => {
    const redlock = await trusting();
    const [a, b, c] = [newResource(), newResource(), newResource()];
    expect(await costOf(count, () => redlock.acquire([a, b, c]))).toEqual(each(1, 5));
  });

  test("a script that an endpoint has forgotten costs a second request, once", async () => {
    const background: Promise<unknown>[] = [];
    const redlock = local.redlock({ fencing: true, waitUntil: (work) => background.push(work) });
    const lock = await redlock.acquire(newResource());
    await lock.release();
    // Every answer has come, so that the script is known.
    await Promise.all(background);
    for (const endpoint of local.endpoints) await endpoint.execute(["SCRIPT", "FLUSH"]);
    const requests = await costOf(2 * count, () => redlock.acquire(newResource()));
    expect(requests.map(([sent]) => sent)).toEqual(local.endpoints.map(() => 2));
    expect(local.commands().sort()).toEqual([
      ...local.endpoints.map(() => "EVAL"),
      ...local.endpoints.map(() => "EVALSHA"),
    ]);
    expect((await costOf(count, () => redlock.acquire(newResource()))).map(([sent]) => sent)).toEqual(
      local.endpoints.map(() => 1),
    );
  });
});
