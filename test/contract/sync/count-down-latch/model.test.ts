import fc from "fast-check";
import { expect, test } from "vitest";
import { ArrivalsMissingError, CountDownLatch, LimitMismatchError } from "../../../../src/sync/index.ts";
import { rejection } from "../../../support/outcomes.ts";
import { seeded } from "../../../support/seeded.ts";
import { type Schedule, schedule } from "../schedule.ts";

// A latch against a plain model of it: a set that is forgotten at some time. One call at a time.

interface Model {
  ids: Set<string>;
  open: boolean;
  /** When it is forgotten. */
  until: number;
}

interface World extends Schedule {
  readonly latch: CountDownLatch;
  readonly stranger: CountDownLatch;
  /** ms since the beginning. */
  now(): number;
}

type Step = fc.AsyncCommand<Model, World>;

const count = 3;
const ttl = 1_000;

/** Forgets what has expired. */
function current(model: Model, now: number): Model {
  if (model.until <= now) Object.assign(model, { ids: new Set(), open: false, until: -1 });
  return model;
}

function clientStateOf({ open, ids }: Model): object {
  const arrived = open ? count : ids.size;
  return { open, arrived, remaining: count - arrived };
}

class Arrive implements Step {
  constructor(readonly id: string) {}
  check = () => true;
  async run(given: Model, { run, latch, now }: World): Promise<void> {
    const model = current(given, now());
    if (!model.open) {
      const isNew = !model.ids.has(this.id);
      model.ids.add(this.id);
      if (isNew || model.until - now() < ttl / 2) model.until = now() + ttl;
      model.open = model.ids.size === count;
    }
    expect(await run(latch.arrive(this.id))).toEqual(clientStateOf(model));
  }
  toString = () => `arrive(${this.id})`;
}

class Inspect implements Step {
  check = () => true;
  async run(model: Model, { run, latch, now }: World): Promise<void> {
    expect(await run(latch.inspect())).toEqual(clientStateOf(current(model, now())));
  }
  toString = () => "inspect";
}

class Wait implements Step {
  check = () => true;
  async run(model: Model, { run, latch, now }: World): Promise<void> {
    const waiting = latch.wait({ wait: 0 });
    if (current(model, now()).open) await run(waiting);
    else expect(await run(rejection(waiting))).toBeInstanceOf(ArrivalsMissingError);
  }
  toString = () => "wait";
}

class AskWithAnotherCount implements Step {
  check = () => true;
  async run(model: Model, { run, stranger, now }: World): Promise<void> {
    if (current(model, now()).until < 0) return;
    expect(await run(rejection(stranger.arrive("x")))).toBeInstanceOf(LimitMismatchError);
  }
  toString = () => "ask with another count";
}

class Pass implements Step {
  constructor(readonly ms: number) {}
  check = () => true;
  async run(_: Model, { run, sleep }: World): Promise<void> {
    await run(sleep(this.ms));
  }
  toString = () => `pass(${this.ms})`;
}

const steps: fc.Arbitrary<Step>[] = [
  fc.constantFrom("a", "b", "c", "d").map((id) => new Arrive(id)),
  fc.constantFrom("a", "b", "c", "d").map((id) => new Arrive(id)),
  fc.constant(new Inspect()),
  fc.constant(new Wait()),
  fc.constant(new AskWithAnotherCount()),
  fc.integer({ min: 1, max: 700 }).map((ms) => new Pass(ms)),
];

test.each([1, 2, 3, 5])("a latch on %i endpoints behaves like its model", async (endpoints) => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 2 ** 31 }),
      fc.commands(steps, { maxCommands: 30 }),
      async (seed, commands) => {
        const world = schedule(seed, endpoints, { haste: 0 });
        const redlock = world.client({ timeout: 50 });
        const begin = world.runtime.now();
        const make = (number: number) => new CountDownLatch(redlock, "l", { count: number, ttl });
        const real: World = {
          ...world,
          latch: make(count),
          stranger: make(count + 1),
          now: () => world.runtime.now() - begin,
        };
        const model: Model = { ids: new Set(), open: false, until: -1 };
        await fc.asyncModelRun(() => ({ model, real }), commands);
      },
    ),
    seeded(15),
  );
});
