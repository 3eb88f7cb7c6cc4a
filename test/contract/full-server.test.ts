import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Idempotency } from "../../src/idempotency/index.ts";
import type { Command, Redlock } from "../../src/index.ts";
import { keyOf } from "../../src/redis/keys.ts";
import { Mailbox } from "../../src/sync/index.ts";
import { queueScript } from "../../src/sync/internal/queue.lua.ts";
import { pubSub } from "../../src/wake-up/index.ts";
import { heldTurn } from "../support/held-turn.ts";
import { gate } from "../support/link.ts";
import { type EndpointSet, type Local, openLocal } from "../support/local-endpoints.ts";
import { rejection } from "../support/outcomes.ts";
import { redisServer } from "../support/redis-servers.ts";
import { holders } from "./sync/holders.ts";

// A server whose memory is full refuses what writes, and executes what deletes. So whatever ends must be freed there.

const over = (via: "fetch" | "ioredis", dialect: EndpointSet["dialect"]): EndpointSet => {
  return { engine: "redis", count: 1, dialect, via };
};
const sets = [over("ioredis", "redis"), over("fetch", "redis"), over("fetch", "upstash")];

/** Begins something, and returns what ends it. */
type Begin = (redlock: Redlock) => Promise<() => Promise<unknown>>;

const holding =
  (acquire: (redlock: Redlock) => Promise<{ release(): Promise<boolean | undefined> }>): Begin =>
  async (redlock) => {
    const hold = await acquire(redlock);
    return async () => expect(await hold.release()).toBe(true);
  };
const failingRun =
  (options: { readonly maxAttempts?: number; readonly lock?: string }): Begin =>
  async (redlock) => {
    const [begun, over] = [gate(), gate<Promise<never>>()];
    const run = rejection(
      new Idempotency(redlock).run("a", options, () => {
        begun.open();
        return over.passed;
      }),
    );
    await begun.passed;
    return async () => {
      over.open(Promise.reject(new Error("the handler failed")));
      expect(await run).toMatchObject({ message: "the handler failed" });
    };
  };

const begins: Readonly<Record<string, Begin>> = {
  "a lock": holding((redlock) => redlock.acquire("a")),
  "a fenced lock": holding((redlock) => redlock.acquire("a", { fencing: true })),
  ...Object.fromEntries(
    holders.map(({ title, acquire }) => [title, holding((redlock) => acquire(redlock, "a"))]),
  ),
  "a turn of a mailbox": async (redlock) => {
    const id = crypto.randomUUID();
    const { posted, end } = await heldTurn(redlock, "a", id);
    return async () => {
      end();
      expect(await posted).toEqual({ status: "handled", left: 0 });
      const again = new Mailbox(redlock, "a").post({ id, value: 1 }, () => expect.unreachable());
      expect(await again).toEqual({ status: "duplicate", left: 0 });
    };
  },
  "a run that fails": failingRun({}),
  "a run with a lock that fails": failingRun({ lock: "b", maxAttempts: 3 }),
};

describe.skipIf(!redisServer).each(sets)("a full server, by $via, $dialect dialect", (set) => {
  let local: Local;
  const execute = (...command: Command) => local.endpoints[0]!.execute(command);
  const fill = async () => {
    await execute("CONFIG", "SET", "maxmemory", 1);
    expect(String(await rejection(execute("SET", "more", "x")))).toContain("OOM");
  };
  /** Of what is left, counters and tombstones hold nothing. */
  const held = async () => {
    const keys = ((await execute("KEYS", "*")) as unknown[]).map(String);
    return keys.filter((key) => !/^redlock:(fence|void|limit|mailbox-done|mailbox-values):/.test(key));
  };

  beforeAll(async () => {
    local = await openLocal(set);
  });
  beforeEach(() => local.reset());
  afterEach(() => execute("CONFIG", "SET", "maxmemory", 0));
  afterAll(() => local.close());

  test.each(Object.entries(begins))("%s is freed", async (_, begin) => {
    for (const options of [{}, { wakeUp: pubSub }]) {
      const end = await begin(local.redlock({ ttl: 60_000, ...options }));
      expect(await held()).not.toEqual([]);
      await fill();
      await end();
      expect(await held()).toEqual([]);
      await execute("CONFIG", "SET", "maxmemory", 0);
    }
  });

  test.each([
    ["released", 2, ["leave", "v", "t", 60_000, 0]],
    ["rolled back", 4, ["rollBack", "v", "t", 60_000, 60_000]],
    ["given up with its ticket", 3, ["leave", "v", "t", 60_000, 0]],
  ])("a fair lock that is %s is freed", async (_, count, args) => {
    const keys = ["lock", "queue", "void", "void"].map((kind, index) => keyOf("redlock", kind, `a${index}`));
    await execute("SET", keys[0]!, "v");
    await fill();
    await execute("EVAL", queueScript.source, count, ...keys.slice(0, count), ...args);
    expect(await execute("EXISTS", keys[0]!)).toBe(0);
  });
});
