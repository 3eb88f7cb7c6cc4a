import fc from "fast-check";
import { expect, test } from "vitest";
import { LockHeldError } from "../../../src/index.ts";
import {
  type Hold,
  LimitMismatchError,
  ReadWriteLock,
  ReentrantLock,
  Semaphore,
} from "../../../src/sync/index.ts";
import { rejection } from "../../support/outcomes.ts";
import { seeded } from "../../support/seeded.ts";
import { type Schedule, schedule } from "./schedule.ts";

// A semaphore, a reentrant lock and a read-write lock against one model of all: a list of holds with their ends, each of
// a group. One call at a time, so that each result is known exactly.

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
  /** Until when the limit of a semaphore is remembered. */
  limitUntil: number;
}

interface World extends Schedule {
  /** Acquires it for a group, without waiting. */
  acquire(group: string, ttl: number): Promise<Hold | null>;
  /** Whether a group may hold it beside these. */
  isFree(group: string, beside: readonly Held[]): boolean;
  /** For a writer that waits. */
  readonly lock?: ReadWriteLock;
  /** A semaphore with another limit. */
  readonly stranger?: Semaphore;
  /** ms since the beginning. */
  now(): number;
}

type Step = fc.AsyncCommand<Model, World>;

const ttls = fc.integer({ min: 100, max: 900 });

function live({ held }: Model, now: number): Held[] {
  return held.filter(({ freeAt }) => freeAt > now);
}

function note(model: Model, held: Held): void {
  model.held.push(held);
  model.limitUntil = Math.max(model.limitUntil, held.freeAt);
}

class Acquire implements Step {
  constructor(
    readonly group: string,
    readonly ttl: number,
  ) {}
  check = () => true;
  async run(model: Model, { run, acquire, isFree, now }: World): Promise<void> {
    const { group, ttl } = this;
    const beside = live(model, now());
    const free = isFree(group, beside);
    // A dead writer's announcement may outlast its hold: then both answers are right.
    const mayWait = group === "reader" && model.held.some(({ announcedUntil = 0 }) => announcedUntil > now());
    const hold = await run(acquire(group, ttl));
    if (!free || !mayWait) expect(hold !== null).toBe(free);
    if (!hold) return;
    expect(hold.remaining()).toBeGreaterThan(0);
    expect(hold.remaining()).toBeLessThanOrEqual(ttl * 0.99);
    if ("slot" in hold)
      expect(beside.map((other) => (other.hold as typeof hold).slot)).not.toContain(hold.slot);
    note(model, { hold, group, freeAt: now() + ttl });
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
  async handle(held: Held, { run, now }: World, model: Model): Promise<void> {
    const valid = held.hold.remaining() > 0;
    const outcome = await run(held.hold.extend(this.ttl).catch((error: Error) => error.name));
    if (!valid) return void expect(outcome).toBe("LockLostError");
    expect(outcome, String(outcome)).toBeGreaterThan(0);
    held.freeAt = now() + this.ttl;
    model.limitUntil = Math.max(model.limitUntil, held.freeAt);
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
  async run(model: Model, { run, sleep, now }: World): Promise<void> {
    await run(sleep(this.ms));
    for (const { hold, freeAt } of model.held) {
      if (freeAt <= now()) expect(hold.remaining()).toBeLessThanOrEqual(0);
    }
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
    note(model, { hold: outcome, group: "writer", freeAt, announcedUntil: now() + 600 });
  }
  toString = () => `waitToWrite(${this.wait}, ${this.ttl})`;
}

class AskWithAnotherLimit implements Step {
  check = (model: Readonly<Model>) => model.limitUntil > 0;
  async run(model: Model, { run, stranger, now }: World): Promise<void> {
    if (model.limitUntil <= now()) return;
    expect(await run(rejection(stranger!.tryAcquire()))).toBeInstanceOf(LimitMismatchError);
  }
  toString = () => "ask with another limit";
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
const waits = fc
  .tuple(fc.integer({ min: 2, max: 500 }), ttls)
  .map(([wait, ttl]) => new WaitToWrite(wait, ttl));

const limit = 3;
const sharedByGroup = (group: string, beside: readonly Held[]) =>
  beside.every((other) => other.group === group && group !== "writer");

type Kind = [
  what: string,
  steps: fc.Arbitrary<Step>[],
  make: (world: Schedule) => Pick<World, "acquire" | "isFree" | "lock" | "stranger">,
];
const kinds: Kind[] = [
  [
    "a semaphore",
    [acquires("holder"), acquires("holder"), fc.constant(new AskWithAnotherLimit())],
    ({ client }) => {
      const redlock = client({ timeout: 50 });
      const semaphore = new Semaphore(redlock, "s", { limit });
      return {
        acquire: (_, ttl) => semaphore.tryAcquire({ ttl }),
        isFree: (_, beside) => beside.length < limit,
        stranger: new Semaphore(redlock, "s", { limit: limit + 1 }),
      };
    },
  ],
  [
    "a reentrant lock",
    [acquires("reader", "a", "b"), acquires("reader", "a", "b")],
    ({ client }) => ({
      // Each call is another process of its owner.
      acquire: (owner, ttl) => new ReentrantLock(client({ timeout: 50 }), "s", { owner, ttl }).tryAcquire(),
      isFree: sharedByGroup,
    }),
  ],
  [
    "a read-write lock",
    [acquires("reader"), acquires("reader", "writer"), waits],
    ({ client }) => {
      const lock = new ReadWriteLock(client({ timeout: 50, backoff: () => 20 }), "s");
      return {
        lock,
        acquire: (group, ttl) =>
          group === "reader" ? lock.tryAcquireRead({ ttl }) : lock.tryAcquireWrite({ ttl }),
        isFree: sharedByGroup,
      };
    },
  ],
];

const cases = kinds.flatMap(([what, steps, make]) =>
  [1, 2, 3, 5].map((count): [string, number, fc.Arbitrary<Step>[], Kind[2]] => [
    what,
    count,
    [...steps, ...handles],
    make,
  ]),
);

test.each(cases)(
  "%s on %i endpoints behaves like its model",
  { timeout: 60_000 },
  async (_, count, steps, make) => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 2 ** 31 }),
        fc.commands(steps, { maxCommands: 25 }),
        async (seed, commands) => {
          const world = schedule(seed, count, { haste: 0 });
          const begin = world.runtime.now();
          // Requests that the quorum did not wait for arrive before the next call: an unanswered extension would fail a
          // longer one.
          const run = <Value>(work: Promise<Value>) =>
            world.run(work).finally(() => world.run(world.sleep(0)));
          const real: World = { ...world, run, now: () => world.runtime.now() - begin, ...make(world) };
          await fc.asyncModelRun(() => ({ model: { held: [], limitUntil: 0 }, real }), commands);
        },
      ),
      seeded(12),
    );
  },
);
