import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalEndpoints } from "../../local/src/index.ts";
import { examine } from "../../src/cli/doctor/doctor.ts";
import { questionsOf } from "../../src/cli/doctor/questions.ts";
import { forgetKey, Idempotency, inspectKey, singleFlight } from "../../src/idempotency/index.ts";
import { type Endpoint, type QuorumError, Redlock } from "../../src/index.ts";
import { forceRelease, inspect } from "../../src/inspect/index.ts";
import { ioredisEndpoint } from "../../src/sockets/index.ts";
import {
  CountDownLatch,
  CyclicBarrier,
  debounce,
  forceRelease as freeSynchronizer,
  Mailbox,
  type MailboxHandler,
  once,
  refreshOnce,
  Semaphore,
  type SynchronizerKind,
  singleton,
} from "../../src/sync/index.ts";
import { patient } from "../support/beyond-tests.ts";
import { type LimitedRedis, startLimitedRedis } from "../support/limited-redis.ts";
import { newResource } from "../support/local-endpoints.ts";
import { rejection } from "../support/outcomes.ts";
import { redisServer } from "../support/redis-servers.ts";
import { holders } from "./sync/holders.ts";

// The table "Rights on the server" of docs/errors.md: each feature works for a user who has exactly these rights, and without
// any one of them it fails with an error that lasts and names the command.

/** What a feature is tried with. */
interface Place {
  readonly redlock: Redlock;
  readonly endpoints: readonly Endpoint[];
  /** A client of a user with all rights. */
  readonly free: Redlock;
  readonly redis: LimitedRedis;
}

type Trial = (place: Place) => Promise<unknown>;

/** Holds each of these, keeps somebody out for a while, and lets somebody in who waits. */
const held =
  (...kinds: readonly SynchronizerKind[]): Trial =>
  async ({ redlock }) => {
    for (const { acquire, another } of holders.filter(({ kind }) => kinds.includes(kind))) {
      const name = newResource();
      const hold = await acquire(redlock, name);
      await hold.extend();
      await rejection(another(redlock, name, { wait: 100 })).then(throwIfRefused);
      const next = another(redlock, name, { wait: 20_000 }).then((other) => other.release());
      next.catch(() => undefined);
      await hold.release();
      await next;
    }
  };

/** Finds a lock held. */
async function refused(redlock: Redlock, free: Redlock): Promise<void> {
  const other = await free.acquire(newResource());
  expect(await redlock.tryAcquire([...other.resources])).toBeNull();
  await other.release();
}

const features: Record<string, Trial> = {
  locks: async ({ redlock, free }) => {
    await refused(redlock, free);
    const name = newResource();
    const lock = await redlock.acquire(name);
    await lock.extend();
    expect(await lock.verify()).toBe(true);
    expect(await lock.release()).toBe(true);
  },
  "`fencing`, several resources": async ({ redlock, free }) => {
    const [name, second] = [newResource(), newResource()];
    const other = await free.acquire(name);
    expect(await redlock.tryAcquire([name, second])).toBeNull();
    await other.release();
    const lock = await redlock.acquire([name, second], { fencing: true });
    await lock.extend();
    expect(await lock.release()).toBe(true);
  },
  "`inspect`": async ({ redlock }) => {
    await inspect(redlock, newResource());
  },
  "`forceRelease` of locks": async ({ redlock }) => {
    await forceRelease(redlock, newResource());
  },
  "runs of `Idempotency`, `singleFlight`": async ({ redlock }) => {
    const runs = new Idempotency(redlock, { wait: 0, maxAttempts: 3 });
    const key = newResource();
    await runs.run(key, () => 1);
    expect(await runs.run(key, () => 2)).toMatchObject({ value: 1 });
    await singleFlight(redlock, newResource(), { ttl: 60_000 }, () => 1);
    await runs.run(newResource(), () => Promise.reject(new Error("own"))).catch(throwUnlessOwn);
  },
  "runs with `lock`": async ({ redlock, free }) => {
    const runs = new Idempotency(redlock, { wait: 0 });
    const name = newResource();
    await runs.run(newResource(), { lock: name }, () => 1);
    const other = await free.acquire(name);
    const refused = await rejection(runs.run(newResource(), { lock: name }, () => 1));
    if ((refused as QuorumError).code === "NO_QUORUM") throw refused;
    await other.release();
  },
  "`inspectKey`, `forgetKey`": async ({ redlock, free }) => {
    const runs = new Idempotency(redlock);
    const key = newResource();
    await new Idempotency(free).run(key, () => 1);
    await inspectKey(runs, key);
    expect(await forgetKey(runs, key)).toBe(true);
  },
  "`Semaphore`": held("Semaphore"),
  "`ReentrantLock`, `ReadWriteLock`": held("ReentrantLock", "ReadWriteLock"),
  "`FairLock`": held("FairLock"),
  "`CountDownLatch`, `CyclicBarrier`": async ({ redlock }) => {
    const latch = new CountDownLatch(redlock, newResource(), { count: 2 });
    for (const party of ["a", "b"]) {
      await latch.arrive(party);
      await latch.inspect();
    }
    await latch.wait();
    const barrier = new CyclicBarrier(redlock, newResource(), { parties: 2 });
    await Promise.all(["a", "b"].map((party) => barrier.arriveAndWait(party)));
  },
  "`once`": async ({ redlock }) => {
    const name = newResource();
    await Promise.all([0, 1].map(() => once(redlock, name, { every: 60_000 }, () => 1)));
    await once(redlock, newResource(), { every: 60_000 }, () => Promise.reject(new Error("own"))).catch(
      throwUnlessOwn,
    );
  },
  "`Mailbox`": async ({ redlock, free }) => {
    const read: MailboxHandler<number> = async (messages) => {
      for await (const _ of messages);
    };
    const name = newResource();
    const full = { maxSize: 1, onFull: "drop-oldest" } as const;
    // Reads nothing, so that the message waits.
    await new Mailbox<number>(free, name).post({ id: "a", value: 1 }, () => undefined);
    await new Mailbox<number>(redlock, name).inspect();
    await new Mailbox<number>(redlock, name).post({ id: "a", value: 1 }, () => undefined);
    await new Mailbox<number>(redlock, name, full).post({ id: "b", value: 1 }, read);
    await new Mailbox<number>(redlock, name).drain(read);
  },
  "`debounce`": async ({ redlock }) => {
    const name = newResource();
    await Promise.all([0, 1].map(() => debounce(redlock, name, { window: 20 }, () => 1)));
  },
  "`forceRelease` of synchronizers": async ({ redlock, free }) => {
    const name = newResource();
    await new Semaphore(free, name, { limit: 1 }).acquire();
    expect(await freeSynchronizer(redlock, "Semaphore", name)).toBe(true);
    await new CountDownLatch(free, name, { count: 2 }).arrive("a");
    expect(await freeSynchronizer(redlock, "CountDownLatch", name)).toBe(true);
  },
  "`redlock-edge doctor`": async ({ endpoints }) => {
    const settings = { prefix: "redlock", timeout: 5_000, id: newResource() };
    const place = { number: 1, variable: "", open: () => endpoints[0]! };
    const report = await examine(place, settings, questionsOf(false));
    if (report.advice.length > 0) throw new Error(JSON.stringify(report));
  },
  "`singleton`, `refreshOnce`": async ({ redlock }) => {
    const name = newResource();
    for (const mode of ["skip", "coalesce", "cancel"] as const) {
      await Promise.all([0, 1].map(() => singleton(redlock, name, { mode }, () => 1)));
    }
    let value = 0;
    const read = () => value;
    const write = (fresh: number) => {
      value = fresh;
      return true;
    };
    await refreshOnce(redlock, name, { read, isFresh: (found) => found > 0, refresh: () => 7, write });
  },
};

/** What is thrown for another reason than a right is thrown by the trial. */
function throwUnlessOwn(error: Error): void {
  if (error.message !== "own") throw error;
}
function throwIfRefused(error: unknown): void {
  if ((error as Partial<QuorumError>).code === "NO_QUORUM") throw error;
}

const base = ["~redlock:*", "&redlock:*"];
let redis: LimitedRedis;
let freeEndpoints: LocalEndpoints;

/** Tries a feature with these commands; undefined: it works. */
async function failureOf(trial: Trial, commands: readonly string[]): Promise<unknown> {
  const client = await redis.connectAs(...base, ...commands);
  await redis.execute("FLUSHALL");
  const options = { ...patient, wait: 1_000, backoff: { min: 5, max: 20 } };
  const endpoints = [ioredisEndpoint(client)];
  let unreleased: unknown;
  const redlock = new Redlock({
    ...options,
    endpoints,
    onEvent: (event) => {
      // A release rejects nothing: its event has the error.
      if (event.type === "released") unreleased ??= event.error;
    },
  });
  const free = new Redlock({ ...options, endpoints: freeEndpoints.endpoints });
  try {
    // The second time, the server knows the scripts.
    for (const _ of [1, 2]) await trial({ redlock, free, redis, endpoints });
    return unreleased;
  } catch (error) {
    return unreleased ?? error;
  } finally {
    client.disconnect();
  }
}

/** What is done only where no failure is thrown: by rollbacks, and when a handler has run, whose result counts. */
const unheard: Record<string, readonly string[]> = {
  "runs of `Idempotency`, `singleFlight`": ["EVALSHA"],
  "`once`": ["DEL"],
  "`ReentrantLock`, `ReadWriteLock`": ["GET"],
};

/** The rows of the page. */
function rowsOfPage(): Record<string, readonly string[]> {
  const page = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
  const [, section = ""] = page.split("\n## Rights on the server\n");
  const rows = [...section.split("\n## ")[0]!.matchAll(/^\| (.+) \| (`[A-Z`, ]+`) \|$/gm)];
  return Object.fromEntries(rows.map(([, feature, commands]) => [feature, commands!.match(/[A-Z]+/g)!]));
}

describe.skipIf(!redisServer)("rights on the server", () => {
  beforeAll(async () => {
    redis = await startLimitedRedis();
    freeEndpoints = await redis.openAs("~*", "&*", "+@all");
  });
  afterAll(async () => {
    await freeEndpoints.close();
    await redis.close();
  });
  const rows = rowsOfPage();
  const grants = (commands: readonly string[]) => commands.map((command) => `+${command.toLowerCase()}`);

  test("the page has each feature that is tried here", () => {
    expect(Object.keys(rows)).toEqual(Object.keys(features));
  });

  test.each(Object.entries(features))("%s: the commands of the page are enough", async (feature, trial) => {
    expect(await failureOf(trial, grants(rows[feature]!))).toBe(undefined);
  });

  test.each(Object.entries(features))(
    "%s: without any one of them an error names it",
    async (feature, trial) => {
      for (const command of rows[feature]!) {
        if (unheard[feature]?.includes(command)) continue;
        const others = rows[feature]!.filter((each) => each !== command);
        const failure = (await failureOf(trial, grants(others))) as QuorumError | undefined;
        // Redis before 7.2 does not say which command of a script it is.
        const named = `\\b${command}\\b${feature.includes("doctor") ? "|all commands in scripts" : ""}`;
        expect(failure?.message, command).toMatch(new RegExp(named, "i"));
        // The command line reports what it has seen, and throws nothing.
        if (feature.includes("doctor")) continue;
        expect(failure!.code, command).toBe("NO_QUORUM");
        expect(failure!.votes[0]!.cause!.permanent, command).toBe(true);
      }
    },
  );
});
