import fc from "fast-check";
import { expect, test } from "vitest";
import { LockHeldError } from "../../../src/index.ts";
import { type Hold, ReadWriteLock, ReentrantLock } from "../../../src/sync/index.ts";
import { seeded } from "../../support/seeded.ts";
import { type Schedule, schedule } from "./schedule.ts";

// A reentrant lock and a read-write lock against one model of both: a list of holds with their ends, all of one group.
// One call at a time, so that each result is known exactly.

interface Held {
  readonly hold: Hold;
  readonly group: string;
  /** When it ends unless its holder acts. */
  freeAt: number;
  /** Until when the announcement of a writer that waited may keep readers out, unless it is released. */
  readonly announcedUntil?: number;
}

interface Model {
  held: Held[];
}

interface World extends Schedule {
  /** Acquires it for a group, without waiting. */
  acquire(group: string, ttl: number): Promise<Hold | null>;
  /** For a writer that waits; undefined for a reentrant lock. */
  readonly lock: ReadWriteLock | undefined;
  /** ms since the beginning. */
  now(): number;
}

type Step = fc.AsyncCommand<Model, World>;

const ttls = fc.integer({ min: 100, max: 900 });
/** Groups of which several holds do not exclude each other. */
const groups = ["reader", "a", "b"] as const;

function live({ held }: Model, now: number): Held[] {
  return held.filter(({ freeAt }) => freeAt > now);
}

class Acquire implements Step {
  constructor(
    readonly group: string,
    readonly ttl: number,
  ) {}
  check = () => true;
  async run(model: Model, { run, acquire, now }: World): Promise<void> {
    const { group, ttl } = this;
    const isFree = live(model, now()).every((other) => other.group === group && group !== "writer");
    // A dead writer's announcement may outlast its hold: then both answers are right.
    const mayWait = group === "reader" && model.held.some(({ announcedUntil = 0 }) => announcedUntil > now());
    const hold = await run(acquire(group, ttl));
    if (!isFree || !mayWait) expect(hold !== null).toBe(isFree);
    if (!hold) return;
    expect(hold.remaining()).toBeGreaterThan(0);
    expect(hold.remaining()).toBeLessThanOrEqual(ttl * 0.99);
    model.held.push({ hold, group, freeAt: now() + ttl });
  }
  toString = () => `acquire(${this.group}, ${this.ttl})`;
}

/** A step with one of the present holds. */
abstract class Handle implements Step {
  constructor(readonly index: number) {}
  check = (model: Readonly<Model>) => model.held.length > 0;
  run(model: Model, world: World): Promise<void> {
    return this.handle(model.held[this.index % model.held.length]!, world, model);
  }
  abstract handle(held: Held, world: World, model: Model): Promise<void>;
}

class Extend extends Handle {
  constructor(
    index: number,
    readonly ttl: number,
  ) {
    super(index);
  }
  async handle(held: Held, { run, now }: World): Promise<void> {
    const valid = held.hold.remaining() > 0;
    const outcome = await run(held.hold.extend(this.ttl).catch((error: Error) => error.name));
    if (!valid) return void expect(outcome).toBe("LockLostError");
    expect(typeof outcome, String(outcome)).toBe("number");
    held.freeAt = now() + this.ttl;
  }
  override toString = () => `extend(${this.index}, ${this.ttl})`;
}

class Release extends Handle {
  async handle(held: Held, { run, now }: World, model: Model): Promise<void> {
    expect(await run(held.hold.release())).toBe(held.freeAt > now());
    expect(held.hold.remaining()).toBe(0);
    model.held = model.held.filter((other) => other !== held);
  }
  override toString = () => `release(${this.index})`;
}

class Verify extends Handle {
  async handle({ hold }: Held, { run }: World): Promise<void> {
    const valid = hold.remaining() > 0;
    expect(await run(hold.verify())).toBe(valid);
    expect(hold.signal.aborted).toBe(!valid);
  }
  override toString = () => `verify(${this.index})`;
}

class Pass implements Step {
  constructor(readonly ms: number) {}
  check = () => true;
  async run(_: Model, { run, sleep }: World): Promise<void> {
    await run(sleep(this.ms));
  }
  toString = () => `pass(${this.ms})`;
}

/** Waits to write. Meanwhile no new reader enters; afterwards readers may as before. */
class WaitToWrite implements Step {
  constructor(
    readonly wait: number,
    readonly ttl: number,
  ) {}
  check = () => true;
  async run(model: Model, { run, lock, acquire, now, sleep }: World): Promise<void> {
    const { wait, ttl } = this;
    const freeFrom = Math.max(now(), ...live(model, now()).map(({ freeAt }) => freeAt));
    const inTime = freeFrom <= now() + wait;
    const waiting = lock!.acquireWrite({ wait, ttl }).catch((error: Error) => error);
    // It has been refused or granted before the reader comes.
    await run(sleep(1));
    expect(await run(acquire("reader", ttl))).toBeNull();
    const outcome = await run(waiting);
    if (outcome instanceof Error) {
      expect(outcome).toBeInstanceOf(LockHeldError);
      expect(inTime).toBe(false);
      return;
    }
    expect(inTime).toBe(true);
    const freeAt = Math.max(freeFrom, now() - 1) + ttl;
    // It lasts for 500 ms, or a pause and two timeouts if that is longer.
    model.held.push({ hold: outcome, group: "writer", freeAt, announcedUntil: now() + 600 });
  }
  toString = () => `waitToWrite(${this.wait}, ${this.ttl})`;
}

const indexes = fc.nat({ max: 5 });
const handles: fc.Arbitrary<Step>[] = [
  fc.tuple(indexes, ttls).map(([index, ttl]) => new Extend(index, ttl)),
  indexes.map((index) => new Release(index)),
  indexes.map((index) => new Release(index)),
  indexes.map((index) => new Verify(index)),
  fc.integer({ min: 1, max: 600 }).map((ms) => new Pass(ms)),
];
const acquires = (...among: readonly string[]): fc.Arbitrary<Step> =>
  fc.tuple(fc.constantFrom(...among), ttls).map(([group, ttl]) => new Acquire(group, ttl));

async function compare(
  count: number,
  steps: fc.Arbitrary<Step>[],
  make: (world: Schedule) => Partial<World>,
) {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 2 ** 31 }),
      fc.commands(steps, { maxCommands: 25 }),
      async (seed, commands) => {
        const world = schedule(seed, count, { haste: 0 });
        const begin = world.runtime.now();
        const run = async <Value>(work: Promise<Value>): Promise<Value> => {
          // Requests that the quorum did not wait for arrive before the next call: an unanswered extension would
          // fail a longer one.
          return world.run(work).finally(() => world.run(world.sleep(0)));
        };
        const real = { ...world, run, now: () => world.runtime.now() - begin, ...make(world) } as World;
        await fc.asyncModelRun(() => ({ model: { held: [] }, real }), commands);
      },
    ),
    seeded(12),
  );
}

test.each([1, 2, 3, 5])(
  "a reentrant lock on %i endpoints behaves like its model",
  async (count) => {
    await compare(count, [acquires(...groups), acquires(...groups), ...handles], ({ client }) => ({
      // Each call is another process of its owner.
      acquire: (owner, ttl) => new ReentrantLock(client({ timeout: 50 }), "s", { owner, ttl }).tryAcquire(),
    }));
  },
  60_000,
);

test.each([1, 2, 3, 5])(
  "a read-write lock on %i endpoints behaves like its model",
  async (count) => {
    const waits = fc
      .tuple(fc.integer({ min: 2, max: 500 }), ttls)
      .map(([wait, ttl]) => new WaitToWrite(wait, ttl));
    const steps = [acquires("reader"), acquires("reader", "writer"), waits, ...handles];
    await compare(count, steps, ({ client }) => {
      const lock = new ReadWriteLock(client({ timeout: 50, backoff: () => 20 }), "s");
      return {
        lock,
        acquire: (group, ttl) =>
          group === "reader" ? lock.tryAcquireRead({ ttl }) : lock.tryAcquireWrite({ ttl }),
      };
    });
  },
  60_000,
);
