import fc from "fast-check";
import { expect, test } from "vitest";
import { LimitMismatchError, type Permit, Semaphore } from "../../../src/sync/index.ts";
import { rejection } from "../../support/outcomes.ts";
import { seeded } from "../../support/seeded.ts";
import { type Schedule, schedule } from "./schedule.ts";

// A semaphore against a model: a list of the permits held and their ends. One call at a time, so that each result is
// known exactly.

interface Held {
  readonly permit: Permit;
  /** When it is free at the latest, unless its holder acts. */
  freeAt: number;
}

interface Model {
  readonly held: Map<number, Held>;
  /** Until when the limit is remembered. */
  limitUntil: number;
}

interface World extends Schedule {
  readonly semaphore: Semaphore;
  readonly stranger: Semaphore;
  /** ms since the beginning. */
  now(): number;
}

type Step = fc.AsyncCommand<Model, World>;

const limit = 3;
const ttls = fc.integer({ min: 100, max: 900 });

function live(model: Model, now: number): Held[] {
  return [...model.held.values()].filter(({ freeAt }) => freeAt > now);
}

/** Slots whose holders rely on them; a slot is free no later than its ttl after it was acquired. */
class Acquire implements Step {
  constructor(readonly ttl: number) {}
  check = () => true;
  async run(model: Model, world: World): Promise<void> {
    const { run, semaphore, now } = world;
    const before = live(model, now());
    const permit = await run(semaphore.tryAcquire({ ttl: this.ttl }));
    expect(permit !== null).toBe(before.length < limit);
    if (!permit) return;
    expect(before.map(({ permit: { slot } }) => slot)).not.toContain(permit.slot);
    expect(permit.remaining()).toBeGreaterThan(0);
    expect(permit.remaining()).toBeLessThanOrEqual(this.ttl * 0.99);
    model.held.set(permit.slot, { permit, freeAt: now() + this.ttl });
    model.limitUntil = Math.max(model.limitUntil, now() + this.ttl);
  }
  toString = () => `acquire(${this.ttl})`;
}

class Extend implements Step {
  constructor(
    readonly slot: number,
    readonly ttl: number,
  ) {}
  check = (model: Readonly<Model>) => model.held.has(this.slot);
  async run(model: Model, { run, now }: World): Promise<void> {
    const held = model.held.get(this.slot)!;
    const { permit } = held;
    const valid = permit.remaining() > 0;
    const outcome = await run(permit.extend(this.ttl).catch((error: Error) => error.name));
    if (!valid) return void expect(outcome).toBe("LockLostError");
    expect(outcome).toBeGreaterThan(0);
    held.freeAt = now() + this.ttl;
    model.limitUntil = Math.max(model.limitUntil, held.freeAt);
  }
  toString = () => `extend(${this.slot}, ${this.ttl})`;
}

class Release implements Step {
  constructor(readonly slot: number) {}
  check = (model: Readonly<Model>) => model.held.has(this.slot);
  async run(model: Model, { run, now }: World): Promise<void> {
    const { permit, freeAt } = model.held.get(this.slot)!;
    const stands = freeAt > now();
    expect(await run(permit.release())).toBe(stands);
    expect(permit.remaining()).toBe(0);
    model.held.delete(this.slot);
  }
  toString = () => `release(${this.slot})`;
}

class Verify implements Step {
  constructor(readonly slot: number) {}
  check = (model: Readonly<Model>) => model.held.has(this.slot);
  async run(model: Model, { run }: World): Promise<void> {
    const { permit } = model.held.get(this.slot)!;
    const valid = permit.remaining() > 0;
    expect(await run(permit.verify())).toBe(valid);
    expect(permit.signal.aborted).toBe(!valid);
  }
  toString = () => `verify(${this.slot})`;
}

class Pass implements Step {
  constructor(readonly ms: number) {}
  check = () => true;
  async run(model: Model, { run, sleep, now }: World): Promise<void> {
    await run(sleep(this.ms));
    // Of a hold whose ttl is over the model knows nothing more.
    for (const [slot, { freeAt, permit }] of model.held) {
      if (freeAt > now()) continue;
      expect(permit.remaining()).toBeLessThanOrEqual(0);
      model.held.delete(slot);
    }
  }
  toString = () => `pass(${this.ms})`;
}

class AskWithAnotherLimit implements Step {
  check = (model: Readonly<Model>) => model.limitUntil > 0;
  async run(model: Model, { run, stranger, now }: World): Promise<void> {
    if (model.limitUntil <= now()) return;
    const error = await run(rejection(stranger.tryAcquire()));
    expect(error).toBeInstanceOf(LimitMismatchError);
  }
  toString = () => "ask with another limit";
}

const slots = fc.integer({ min: 0, max: limit - 1 });
const steps: fc.Arbitrary<Step>[] = [
  ttls.map((ttl) => new Acquire(ttl)),
  ttls.map((ttl) => new Acquire(ttl)),
  fc.tuple(slots, ttls).map(([slot, ttl]) => new Extend(slot, ttl)),
  slots.map((slot) => new Release(slot)),
  slots.map((slot) => new Verify(slot)),
  fc.integer({ min: 1, max: 600 }).map((ms) => new Pass(ms)),
  fc.constant(new AskWithAnotherLimit()),
];

test.each([1, 2, 3, 5])("a semaphore on %i endpoints behaves like its model", async (count) => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 2 ** 31 }),
      fc.commands(steps, { maxCommands: 25 }),
      async (seed, commands) => {
        const world = schedule(seed, count, { haste: 0 });
        const redlock = world.client({ timeout: 50 });
        const begin = world.runtime.now();
        const make = (permits: number) => new Semaphore(redlock, "s", { limit: permits });
        const real: World = {
          ...world,
          // Requests that the quorum did not wait for arrive before the next call: an unanswered extension would fail
          // a longer one.
          run: (work) => world.run(work).finally(() => world.run(world.sleep(0))),
          semaphore: make(limit),
          stranger: make(limit + 1),
          now: () => world.runtime.now() - begin,
        };
        const model: Model = { held: new Map(), limitUntil: 0 };
        await fc.asyncModelRun(() => ({ model, real }), commands);
      },
    ),
    seeded(20),
  );
});
