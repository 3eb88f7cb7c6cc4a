import process from "node:process";
import { describe, expect, test } from "vitest";
import { memoryEndpoint } from "../../../local/src/memory/index.ts";
import { seededRandom } from "../../../local/src/memory/seeded-random.ts";
import { handoff, resume } from "../../../src/handoff/index.ts";
import {
  type AcquireOptions,
  type Lock,
  Redlock,
  type RedlockEvent,
  type RedlockOptions,
} from "../../../src/index.ts";
import { once } from "../../../src/sync/index.ts";
import type { Fate } from "../../support/link.ts";
import { seeded, seedsUntil } from "../../support/seeded.ts";
import { until } from "../../support/until.ts";
import { virtualWorld } from "../../support/virtual-client.ts";

// Each call, each hold and each run has exactly one end: the rule of `RedlockEvent` and `IdempotencyEvent`, on random
// schedules of calls and faults in virtual time.

/** The orders of events that the rule allows for one call, and the hold that it begins. */
const ofCall = /^((contended )*notAcquired|(contended )*acquired (extended )*(released|lost|detached))$/;

/** Makes a hook for each call. */
type Hooks = () => RedlockOptions["onEvent"];

type World = ReturnType<typeof virtualWorld>;

function fateOf({ late, slow }: World, random: () => number, faults: number): Fate {
  const ms = Math.ceil(random() * 150);
  const fates: Fate[] = ["refused", "lost", "reply lost", "twice", late(ms), slow(ms)];
  return random() < faults ? fates[Math.floor(random() * fates.length)]! : "delivered";
}

function acquireOptions({ runtime }: World, random: () => number): AcquireOptions {
  const chance = (share: number) => random() < share;
  const controller = new AbortController();
  if (chance(0.3)) runtime.timer(random() * 400, () => controller.abort(new Error("given up")));
  return {
    ttl: 300 + Math.floor(random() * 700),
    wait: chance(0.5) ? 0 : random() * 600,
    fencing: chance(0.3),
    autoExtend: chance(0.3),
    maxHold: 1_500,
    // Sometimes it has passed.
    deadline: chance(0.2) ? runtime.now() + random() * 1_000 - 200 : undefined,
    signal: controller.signal,
    backoff: chance(0.05)
      ? () => Number(expect.unreachable("the backoff's own error"))
      : { min: 10, max: 40 },
  };
}

/** Plays a schedule of calls; resolves with everything that two clients saw and sent. */
async function play(seed: number, hooks: Hooks): Promise<string[]> {
  const random = seededRandom(seed);
  const world = virtualWorld();
  const { runtime } = world;
  const clients = [world.client({ onEvent: undefined }), world.client({ onEvent: undefined })];
  const faults = random() * 0.4;
  for (const { links } of clients) for (const each of links) each.fate = () => fateOf(world, random, faults);
  const seen: string[] = [];
  const locks: Lock[] = [];
  const note = (name: string, call: Promise<unknown>) => {
    const told = (what: unknown) => void seen.push(`${runtime.monotonic()} ${name}: ${String(what)}`);
    return call.then((value) => told(typeof value === "object" ? "object" : value), told);
  };
  const keep = async (acquiring: Promise<Lock>) => void locks.push(await acquiring);
  const step = (): Promise<unknown> => {
    const { redlock } = clients[Math.floor(random() * 2)]!;
    const resource = ["a", "b", ["a", "b"]][Math.floor(random() * 3)]!;
    const lock = locks[Math.floor(random() * locks.length)];
    const kind = Math.floor(random() * 10);
    // Sometimes longer than its interval.
    const took = random() * 800;
    const routine = () => new Promise<void>((resolve) => runtime.timer(took, resolve));
    const onEvent = hooks();
    if (kind === 0) return note("once", once(redlock, "once", { every: 500, onEvent }, routine));
    if (!lock || kind < 4) {
      return note("acquire", keep(redlock.acquire(resource, { ...acquireOptions(world, random), onEvent })));
    }
    if (kind < 6) return note("release", lock.release());
    if (kind === 6) return note("extend", lock.extend(300 + Math.floor(random() * 700)));
    if (kind === 7) return note("verify", lock.verify());
    if (kind === 8) return note("signal", Promise.resolve(lock.signal.aborted));
    return note("handoff", keep(handoff(lock).then((json) => resume(redlock, json, { onEvent }))));
  };
  const calls: Promise<unknown>[] = [];
  for (let count = 0; count < 30; count += 1) {
    calls.push(step());
    await runtime.advance(Math.floor(random() * 120));
  }
  await runtime.advance(10_000);
  await Promise.all(calls);
  return [...seen, ...clients.flatMap(({ links }) => links.flatMap(({ sent }) => sent.map(String)))];
}

describe("on random schedules", () => {
  test("every call and every hold has exactly one end, and nothing follows it", async () => {
    const all = ["detached", "lost", "notAcquired", "released"];
    const ends = new Set<string>();
    for (const run of seedsUntil(seeded(20), () => all.every((end) => ends.has(end)))) {
      const calls: string[][] = [];
      await play(run, () => {
        const types: string[] = [];
        calls.push(types);
        return (event) => "resources" in event && types.push(event.type);
      });
      // Other operations than those that acquire report nothing to the hook of their call.
      const found = calls.filter(({ length }) => length > 0);
      expect(found.length, `SEED=${run}`).toBeGreaterThan(3);
      for (const types of found) {
        expect(types.join(" "), `SEED=${run}`).toMatch(ofCall);
        ends.add(types.at(-1)!);
      }
    }
    expect([...ends].sort()).toEqual(all);
  });

  test("a hook changes nothing, whether it throws, rejects, or is none", async () => {
    const { seed, numRuns } = seeded(4);
    for (let run = seed; run < seed + numRuns; run += 1) {
      const observed = await play(run, () => () => undefined);
      const hooks = [
        () => {
          throw new Error("the hook's own");
        },
        () => Promise.reject(new Error("the hook's own")),
      ];
      for (const onEvent of hooks) expect(await play(run, () => onEvent), `SEED=${run}`).toEqual(observed);
      // Without a hook, nobody notices the end of a lock that is released after it: its signal does not abort.
      const rest = (seen: string[]) => seen.filter((line) => !/^\S+ signal:/.test(line));
      expect(rest(await play(run, () => undefined)), `SEED=${run}`).toEqual(rest(observed));
    }
  });
});

test("a hook learns of a lock that nobody releases, and does not keep the process alive for that", async () => {
  /** Timers that keep Node from ending. */
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const events: RedlockEvent[] = [];
  const endpoints = [memoryEndpoint()];
  const redlock = new Redlock({
    endpoints,
    onEvent: (event) => event.type !== "request" && events.push(event),
    wait: 0,
    waitUntil: () => undefined,
  });
  const before = timers();
  const lock = await redlock.acquire("long", { ttl: 60_000 });
  expect(timers()).toBe(before);
  // Who listens to the signal waits for it.
  expect(lock.signal.aborted).toBe(false);
  expect(timers()).toBe(before + 1);
  await lock.extend();
  expect(timers()).toBe(before + 1);
  await lock.release();
  expect(timers()).toBe(before);
  await redlock.acquire("short", { ttl: 50 });
  await until(() => events.at(-1)?.type === "lost", "its end");
});
