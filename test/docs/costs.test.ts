import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Idempotency, type RunOptions } from "../../src/idempotency/index.ts";
import type { AcquireOptions, Lock, Redlock } from "../../src/index.ts";
import { pubSub } from "../../src/wake-up/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { type EndpointSet, type Local, newResource, openLocal } from "../support/local-endpoints.ts";
import { redisServer } from "../support/redis-servers.ts";
import { until } from "../support/until.ts";

// What the pages say of costs, held against what a real server counts.

type Cost = readonly [requests: number, commands: number];

const never = () => expect.unreachable("nothing may run");

const costs = /^\| (.+?) \| (\d+)(?: request)?, (\d+)(?: command)? \| (\d+), (\d+) \|$/gm;

/** By operation: its cost in the dialects `upstash` and `redis-8.4`, then in `redis`. */
const documented = [...readFileSync("docs/choosing.md", "utf8").matchAll(costs)].map(
  ([, operation, ...numbers]) => {
    const [requests, commands, ...ofRedis] = numbers.map(Number);
    return [operation!, [requests, commands], ofRedis] as const;
  },
);

/** An endpoint, and what it counts. */
class Stage {
  readonly redlock: Redlock;
  readonly #local: Local;

  constructor(local: Local) {
    this.#local = local;
    this.redlock = local.redlock({ wait: Infinity });
  }

  get endpoint() {
    return this.#local.endpoints[0]!;
  }

  /** Requests that have arrived, and commands that the server has executed. */
  async counts(): Promise<Cost> {
    const { requests, billed } = this.endpoint.log;
    // Commands of another dialect are emulated if the server lacks them.
    if (this.#local.set.dialect !== "redis") return [requests, billed];
    const stats = String(await this.endpoint.execute(["INFO", "commandstats"]));
    // Without those that the gateway sends to count.
    const calls = stats.matchAll(/^cmdstat_(?!(?:info|multi|exec):)[^:]+:calls=(\d+)/gm);
    return [requests, [...calls].reduce((sum, [, count]) => sum + Number(count), 0)];
  }

  async cost(work: () => unknown): Promise<Cost> {
    const before = await this.counts();
    await work();
    const after = await this.counts();
    return [after[0] - before[0], after[1] - before[1]];
  }

  /** The cost of what is done with a lock that was acquired before. */
  async costWith(use: (lock: Lock) => unknown, options: AcquireOptions = {}): Promise<Cost> {
    const lock = await this.redlock.acquire(newResource(), options);
    return this.cost(() => use(lock));
  }

  /** The cost of a run of a key, after `before`. */
  async costOfRun(options: RunOptions<unknown>, before: Before = async () => undefined): Promise<Cost> {
    const idempotency = new Idempotency(this.redlock, { lease: 60_000 });
    const key = freshKey();
    const run = (handler: () => unknown) => idempotency.run(key, options, handler);
    const isRun = await before({ run, idempotency, key });
    return this.cost(() => run(isRun ? never : () => "done").catch(() => undefined));
  }
}

type Before = (call: {
  readonly run: (handler: () => unknown) => Promise<unknown>;
  readonly idempotency: Idempotency;
  readonly key: string;
}) => Promise<unknown>;

/** The cost of a renewal, while the handler waits for it. */
async function renewal(stage: Stage): Promise<Cost> {
  const { log } = stage.endpoint;
  let cost: Cost = [0, 0];
  await new Idempotency(stage.redlock, { lease: 1_500 }).run(freshKey(), async () => {
    const before = log.entries.length;
    cost = await stage.cost(() => until(() => log.entries.length > before, "a renewal"));
  });
  return cost;
}

const lockOf = () => ({ lock: newResource() });

/** By the words of docs/choosing.md. */
const operations: Readonly<Record<string, (stage: Stage) => Promise<Cost>>> = {
  acquire: (stage) => stage.cost(() => stage.redlock.acquire(newResource())),
  extend: (stage) => stage.costWith((lock) => lock.extend()),
  release: (stage) => stage.costWith((lock) => lock.release()),
  "release with `wakeUp`": (stage) => stage.costWith((lock) => lock.release(), { wakeUp: pubSub }),
  "acquire with `fencing`": (stage) =>
    stage.cost(() => stage.redlock.acquire(newResource(), { fencing: true })),
  "a round that finds the lock held": (stage) =>
    stage.costWith(({ resources }) => stage.redlock.tryAcquire(resources)),
  "the same with `fencing`": (stage) =>
    stage.costWith(({ resources }) => stage.redlock.tryAcquire(resources, { fencing: true })),
  "idempotent run, first delivery": (stage) => stage.costOfRun({}),
  "the same with `maxAttempts`": (stage) => stage.costOfRun({ maxAttempts: 3 }),
  "renewal of its lease": renewal,
  "idempotent run, duplicate, and each round of one that waits": (stage) =>
    stage.costOfRun({}, ({ run }) => run(() => "done")),
  "idempotent run with `lock` (and fence), first delivery": (stage) => stage.costOfRun(lockOf()),
  "idempotent run with `lock`, duplicate": (stage) =>
    stage.costOfRun(lockOf(), ({ run }) => run(() => "done")),
  "idempotent run that finds its `lock` held": async (stage) => {
    const given = lockOf();
    await stage.redlock.acquire(given.lock);
    return stage.costOfRun({ ...given, wait: 0 });
  },
};

const sets = (["redis", "redis-8.4", "upstash"] as const).map(
  (dialect): EndpointSet => ({ engine: "redis", count: 1, dialect, via: "fetch" }),
);

describe.skipIf(!redisServer).each(sets)("the table of docs/choosing.md: $dialect dialect", (set) => {
  let local: Local;
  beforeAll(async () => {
    local = await openLocal(set);
  });
  afterAll(() => local.close());

  test("has what each operation costs", async () => {
    const measured: [operation: string, cost: Cost][] = [];
    for (const [operation, measure] of Object.entries(operations)) {
      const stage = new Stage(local);
      // The first one sends the texts of its scripts, and shows that the endpoint releases.
      await measure(stage);
      measured.push([operation, await measure(stage)]);
    }
    const column = set.dialect === "redis" ? 2 : 1;
    expect(measured).toEqual(documented.map((row) => [row[0], row[column]]));
  });
});
