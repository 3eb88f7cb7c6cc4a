import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { QuorumError } from "../../../src/errors.ts";
import { hashKey } from "../../../src/idempotency/digest.ts";
import { DeadKeyError, inspectKey, LeaseLostError } from "../../../src/idempotency/index.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { eachEngine } from "../../support/each-engine.ts";
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
const never = () => expect.unreachable("nothing may run");

const counterName = async (key: string) => keyOf("redlock", "tries", await hashKey([], key));
const counts = (command: readonly unknown[]) => command.some((word) => String(word).startsWith("A1 "));

eachEngine(storesOf([1, 3]))("runs that do not end on $title", ({ open, count, dialect }) => {
  const nothing = new Array(count).fill(null);
  let store: OpenStore;
  let healthy: Client;
  beforeAll(async () => {
    store = await open();
    healthy = clientOf(store, { backoff });
    // The first request of all is the slowest, and caches the scripts.
    await outcomeOf(healthy.idempotency.run(freshKey(), () => Promise.reject(new Error("no"))));
    await inspectKey(healthy.idempotency, freshKey());
  });
  afterAll(() => store.close());

  async function countersOf(key: string): Promise<(string | null)[]> {
    const name = await counterName(key);
    return Promise.all(
      store.endpoints.map((_, index) => store.execute(index, ["GET", name]) as Promise<string | null>),
    );
  }

  /** A run whose handler has begun. */
  async function begin(
    client: Client,
    key: string,
    options: { maxAttempts?: number; wait?: number } = {},
  ): Promise<{ outcome: Promise<{ error?: unknown }>; end: Gate<unknown> }> {
    const started = gate();
    const end = gate<unknown>();
    const outcome = outcomeOf(
      client.idempotency.run(key, { maxAttempts: 100, ...options }, async () => {
        started.open();
        const value = await end.passed;
        if (value instanceof Error) throw value;
        return value;
      }),
    );
    await Promise.race([started.passed, outcome.then(({ error }) => Promise.reject(error))]);
    await allArrived(client.links);
    return { outcome, end };
  }

  /** Ends a lease at once. */
  async function expire(key: string): Promise<void> {
    const name = await recordName(key);
    await Promise.all(store.endpoints.map((_, index) => store.execute(index, ["DEL", name])));
  }

  /** A run that begins and never ends. `silent`: an endpoint that it did not reach. */
  async function crash(key: string, { silent }: { silent?: number } = {}): Promise<void> {
    const client = clientOf(store, { wait: 10_000, backoff });
    if (silent !== undefined) client.links[silent]!.fate = () => "refused";
    await begin(client, key);
    for (const link of client.links) link.fate = () => "lost";
    await expire(key);
  }

  test("make the key dead once there are as many as allowed", async () => {
    const key = freshKey();
    const events: string[] = [];
    const lease = 500;
    for (let time = 0; time < 2; time += 1) {
      // With real leases that end by themselves.
      const dying = clientOf(store, { lease, backoff });
      await begin(dying, key, { maxAttempts: 2, wait: 15_000 });
      for (const link of dying.links) link.fate = () => "lost";
    }
    const heir = clientOf(store, {
      lease,
      backoff,
      onEvent: ({ type }) => type !== "called" && events.push(type),
    });
    const options = { maxAttempts: 2, wait: 15_000 };
    for (let time = 0; time < 3; time += 1) {
      const { error } = await outcomeOf(heir.idempotency.run(key, options, never));
      expect(error).toBeInstanceOf(DeadKeyError);
      expect(error).toMatchObject({ name: "DeadKeyError", code: "DEAD_KEY", key, attempts: 2 });
      expect(await recordsOf(store, key)).toEqual(nothing);
    }
    expect(events).toEqual(["dead", "dead", "dead"]);
    const name = await counterName(key);
    for (let index = 0; index < count; index += 1) {
      const ttl = (await store.execute(index, ["PTTL", name])) as number;
      expect(ttl > 0 && ttl <= 86_400_000).toBe(true);
    }
    // Who allows more, or does not ask, runs it.
    expect((await heir.idempotency.run(key, () => 1)).status).toBe("executed");
  });

  test("are no longer counted once one has failed", async () => {
    const key = freshKey();
    await crash(key);
    const failing = await begin(healthy, key, { maxAttempts: 2 });
    failing.end.open(new Error("declined"));
    await failing.outcome;
    expect(await countersOf(key)).toEqual(nothing);
    await crash(key);
    await crash(key);
    const { error } = await outcomeOf(healthy.idempotency.run(key, { maxAttempts: 2 }, never));
    expect(error).toMatchObject({ attempts: 2 });
  });

  test.each([0, 1])(
    "are forgotten before the result of one that has completed is, after %i",
    async (crashes) => {
      const key = freshKey();
      for (let time = 0; time < crashes; time += 1) await crash(key);
      const retention = 60_000;
      await healthy.idempotency.run(key, { maxAttempts: 2, retention }, () => "done");
      const records = await ttlsOf(store, key);
      for (const [index, ttl] of records.entries()) {
        const left = (await store.execute(index, ["PTTL", await counterName(key)])) as number;
        expect(left).toBeLessThanOrEqual(ttl);
        expect(left).toBeGreaterThan(0);
      }
      // Meanwhile duplicates are replayed, also to those who allow fewer runs.
      const again = await healthy.idempotency.run(key, { maxAttempts: 1 }, never);
      expect(again).toEqual({ status: "replayed", value: "done" });
    },
  );

  test("are not those that only contended for the claim", async () => {
    const key = freshKey();
    const clients = Array.from({ length: 4 }, () => clientOf(store, { wait: 20_000, backoff }));
    let runs = 0;
    const outcomes = await Promise.all(
      Array.from({ length: 24 }, (_, index) =>
        clients[index % 4]!.idempotency.run(key, { maxAttempts: 1 }, () => ++runs),
      ),
    );
    expect(runs).toBe(1);
    for (const { value } of outcomes) expect(value).toBe(1);
  });

  test("are counted when their handler begins, not when it ends", async () => {
    const key = freshKey();
    const late = await begin(healthy, key);
    const [, inspected] = await Promise.all([expire(key), inspectKey(healthy.idempotency, key)]);
    expect(inspected.attempts).toBe(1);
    await crash(key);
    // Its place has been taken: what it takes back now must not be the other's.
    late.end.open(new Error("failed in the end"));
    await late.outcome;
    expect((await inspectKey(healthy.idempotency, key)).attempts).toBe(2);
    const { error } = await outcomeOf(healthy.idempotency.run(key, { maxAttempts: 2 }, never));
    expect(error).toBeInstanceOf(DeadKeyError);
  });

  test("are counted also where a result came too late", async () => {
    const key = freshKey();
    const late = await begin(healthy, key);
    await expire(key);
    const other = await begin(healthy, key);
    late.end.open("too late");
    expect((await late.outcome).error).toBeInstanceOf(LeaseLostError);
    await expire(key);
    const { error } = await outcomeOf(healthy.idempotency.run(key, { maxAttempts: 2 }, never));
    expect(error).toMatchObject({ code: "DEAD_KEY", attempts: 2 });
    other.end.open(new Error("over"));
    await other.outcome;
  });

  test("are not begun where they cannot be counted, and do not count then", async () => {
    for (const fate of ["refused", "reply lost"] as const) {
      const key = freshKey();
      const events: string[] = [];
      const { idempotency, links } = clientOf(store, {
        onEvent: ({ type }) => type !== "called" && events.push(type),
      });
      const spoil = (link: Link) => {
        link.fate = (command) => {
          if (!counts(command)) return "delivered";
          link.fate = () => "delivered";
          return fate;
        };
      };
      links.forEach(spoil);
      const { error } = await outcomeOf(idempotency.run(key, { maxAttempts: 1 }, never));
      expect(error).toBeInstanceOf(QuorumError);
      expect((error as QuorumError).votes[0]).toMatchObject({ outcome: "error", cause: { kind: "network" } });
      expect(events).toEqual(["unavailable"]);
      expect(await recordsOf(store, key)).toEqual(nothing);
      expect(await countersOf(key)).toEqual(nothing);
      expect((await idempotency.run(key, { maxAttempts: 1 }, () => 1)).status).toBe("executed");
    }
  });

  test("keep their count when the next one cannot be counted", async () => {
    const key = freshKey();
    await crash(key);
    const { idempotency, links } = clientOf(store);
    for (const link of links) {
      link.fate = (command) => {
        if (!command.some((word) => /^A1 \S+ 2$/.test(String(word)))) return "delivered";
        link.fate = () => "delivered";
        return "reply lost";
      };
    }
    const { error } = await outcomeOf(idempotency.run(key, { maxAttempts: 2 }, never));
    expect(error).toBeInstanceOf(QuorumError);
    expect((await inspectKey(idempotency, key)).attempts).toBe(1);
    await crash(key);
    expect((await outcomeOf(idempotency.run(key, { maxAttempts: 2 }, never))).error).toBeInstanceOf(
      DeadKeyError,
    );
  });

  if (count === 3) {
    test("keep it also at an endpoint that is late to write a count that is rolled back", async () => {
      const key = freshKey();
      await crash(key);
      const { idempotency, links } = clientOf(store);
      const takenBack = gate();
      const second = (word: unknown) => /^A1 \S+ 2$/.test(String(word));
      for (const link of links) {
        let isWritten = false;
        link.fate = (command) => {
          if (!command.some(second)) return "delivered";
          if (isWritten) {
            // What it is replaced with again.
            takenBack.open();
            return "delivered";
          }
          isWritten = true;
          return link === links[2] ? { before: () => takenBack.passed } : "reply lost";
        };
      }
      const { error } = await outcomeOf(idempotency.run(key, { maxAttempts: 2 }, never));
      expect(error).toBeInstanceOf(QuorumError);
      await allArrived(links);
      expect((await inspectKey(idempotency, key)).attempts).toBe(1);
    });
  }

  test("run when waiting brings back what could not be counted", async () => {
    const { idempotency, links } = clientOf(store, { wait: 15_000, backoff });
    let failures = 0;
    for (const link of links) {
      link.fate = (command) => {
        if (!counts(command) || failures >= 2 * count) return "delivered";
        failures += 1;
        return "refused";
      };
    }
    expect((await idempotency.run(freshKey(), { maxAttempts: 1 }, () => 1)).status).toBe("executed");
    expect(failures).toBe(2 * count);
  });

  test("leave nothing when they are aborted while they are counted", async () => {
    const key = freshKey();
    const { idempotency, links } = clientOf(store);
    const controller = new AbortController();
    const reason = new Error("the client has gone");
    for (const link of links) {
      link.fate = (command) => {
        if (!counts(command)) return "delivered";
        link.fate = () => "delivered";
        return { before: () => controller.abort(reason) };
      };
    }
    const options = { maxAttempts: 1, signal: controller.signal };
    expect((await outcomeOf(idempotency.run(key, options, never))).error).toBe(reason);
    await allArrived(links);
    await until(async () => (await recordsOf(store, key)).every((text) => text === null));
    expect((await healthy.idempotency.run(key, { maxAttempts: 2 }, () => 1)).status).toBe("executed");
  });

  test("are not counted where the stored value is not a count", async () => {
    const key = freshKey();
    const name = await counterName(key);
    for (const text of ["7", "A1 t0 0", "A1 t0 x", "A1 t0 1 2"]) {
      for (let index = 0; index < count; index += 1) await store.execute(index, ["SET", name, text]);
      const { error } = await outcomeOf(healthy.idempotency.run(key, { maxAttempts: 9 }, never));
      expect(error).toBeInstanceOf(QuorumError);
      expect(await countersOf(key)).toEqual(new Array(count).fill(text));
      expect(await recordsOf(store, key)).toEqual(nothing);
    }
  });

  test("cost one request and one command more, and duplicates nothing", async () => {
    const key = freshKey();
    const complete = dialect === "redis" ? 3 : 1;
    const costOf = async (work: () => Promise<unknown>) => {
      const before = store.endpoints.map((_, index) => store.cost(index));
      await work();
      return before.map(({ requests, billed }, index) => {
        const after = store.cost(index);
        return [after.requests - requests, after.billed - billed];
      });
    };
    const run = () => healthy.idempotency.run(key, { maxAttempts: 3, fingerprint: "f" }, () => 1);
    expect(await costOf(run)).toEqual(new Array(count).fill([3, 2 + complete]));
    expect(await costOf(run)).toEqual(new Array(count).fill([1, 1]));
  });

  if (count === 3) {
    test("are all counted, whichever endpoint each of them did not reach", async () => {
      const key = freshKey();
      for (const silent of [2, 0, 1, 2, 0, 1]) await crash(key, { silent });
      const { error } = await outcomeOf(healthy.idempotency.run(key, { maxAttempts: 6 }, never));
      expect(error).toMatchObject({ code: "DEAD_KEY", attempts: 6 });
    });
  }
});

describe("maxAttempts", async () => {
  const store = await storesOf([1])[0]!.open();
  test.each([
    [0, RangeError],
    [1.5, RangeError],
    [Infinity, RangeError],
    ["3", TypeError],
    [null, TypeError],
  ])("%j is refused before anything is sent", async (maxAttempts, type) => {
    const { idempotency, links } = clientOf(store);
    const options = { maxAttempts: maxAttempts as number };
    expect(() => clientOf(store, options)).toThrow(type);
    const { error } = await outcomeOf(idempotency.run(freshKey(), options, never));
    expect(error).toBeInstanceOf(type);
    expect(String(error)).toContain("maxAttempts");
    expect(links[0]!.sent).toEqual([]);
  });
});
