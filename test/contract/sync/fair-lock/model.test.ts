import fc from "fast-check";
import { expect, test } from "vitest";
import { Redlock } from "../../../../src/index.ts";
import { clientStateOf } from "../../../../src/lock/options.ts";
import { FairLock, type Hold } from "../../../../src/sync/index.ts";
import { seeded } from "../../../support/seeded.ts";
import { type Schedule, schedule } from "../schedule.ts";

// A fair lock against a model: a list of the contenders in order of arrival, of which the first holds the lock. After
// each step so much time passes that all pauses are over and the tickets of dead contenders have expired.

const ttl = 2_000;
const settling = 4_000;

/** A contender with its own connections to the endpoints. */
interface Visit {
  readonly name: string;
  hold?: Hold;
  outcome?: unknown;
  abort(): void;
  die(): void;
}

interface World extends Schedule {
  readonly visit: () => Visit;
  readonly stranger: FairLock;
}

/** The holder, and the waiters in order. */
interface Model {
  line: Visit[];
}

type Step = fc.AsyncCommand<Model, World>;

async function settle({ line }: Model, { run, sleep }: World): Promise<void> {
  await run(sleep(settling));
  expect(line.map(({ hold }) => (hold ? "holds" : "waits"))).toEqual(
    line.map((_, index) => (index === 0 ? "holds" : "waits")),
  );
  for (const { outcome } of line) expect(outcome).toBeUndefined();
}

class Come implements Step {
  constructor(readonly after: number) {}
  check = ({ line }: Readonly<Model>) => line.length < 5;
  async run(model: Model, world: World): Promise<void> {
    model.line.push(world.visit());
    // Another may come before this call has ended, but not in the same ms.
    await world.run(world.sleep(this.after));
    if (model.line.length < 5) model.line.push(world.visit());
    await settle(model, world);
  }
  toString = () => `two come, ${this.after} ms apart`;
}

class Release implements Step {
  check = ({ line }: Readonly<Model>) => line.length > 0;
  async run(model: Model, world: World): Promise<void> {
    const [first, ...rest] = model.line;
    expect(await world.run(first!.hold!.release())).toBe(true);
    model.line = rest;
    await settle(model, world);
  }
  toString = () => "release";
}

class GiveUp implements Step {
  constructor(readonly index: number) {}
  check = ({ line }: Readonly<Model>) => line.length > this.index;
  async run(model: Model, world: World): Promise<void> {
    const [visit] = model.line.splice(this.index, 1);
    visit!.abort();
    await settle(model, world);
    expect(visit!.outcome).toBe("enough");
  }
  toString = () => `give up at ${this.index}`;
}

class Die implements Step {
  constructor(readonly index: number) {}
  check = ({ line }: Readonly<Model>) => line.length > this.index;
  async run(model: Model, world: World): Promise<void> {
    const [visit] = model.line.splice(this.index, 1);
    visit!.die();
    if (this.index === 0) await world.run(world.sleep(ttl));
    await settle(model, world);
  }
  toString = () => `die at ${this.index}`;
}

class Try implements Step {
  check = () => true;
  async run({ line }: Model, { run, stranger }: World): Promise<void> {
    const hold = await run(stranger.tryAcquire());
    expect(hold === null).toBe(line.length > 0);
    if (hold) expect(await run(hold.release())).toBe(true);
  }
  toString = () => "try";
}

const indexes = fc.integer({ min: 0, max: 4 });
const steps: fc.Arbitrary<Step>[] = [
  fc.integer({ min: 1, max: 300 }).map((after) => new Come(after)),
  fc.integer({ min: 1, max: 300 }).map((after) => new Come(after)),
  fc.constant(new Release()),
  indexes.map((index) => new GiveUp(index + 1)),
  indexes.map((index) => new Die(index)),
  fc.constant(new Try()),
];

function worldOf(seed: number, count: number): World {
  const world = schedule(seed, count, { haste: 0 });
  const options = { ttl, timeout: 100, wait: Infinity, autoExtend: true, backoff: { min: 10, max: 200 } };
  let visits = 0;
  return {
    ...world,
    stranger: new FairLock(world.client(options), "f"),
    visit() {
      visits += 1;
      const controller = new AbortController();
      let alive = true;
      const endpoints = clientStateOf(world.client(options)).settings.endpoints.map((endpoint) => ({
        ...endpoint,
        send: (command: readonly (string | number)[], signal: AbortSignal) =>
          alive
            ? endpoint.send(command, signal)
            : new Promise((_resolve, reject) => {
                signal.addEventListener("abort", () => reject(new Error("nobody is there")));
              }),
      }));
      const redlock = new Redlock({ ...options, runtime: world.runtime, endpoints });
      const visit: Visit = {
        name: `visit ${visits}`,
        abort: () => controller.abort("enough"),
        die() {
          alive = false;
          controller.abort("dead");
        },
      };
      new FairLock(redlock, "f").acquire({ signal: controller.signal }).then(
        (hold) => {
          visit.hold = hold;
        },
        (error) => {
          visit.outcome = error;
        },
      );
      return visit;
    },
  };
}

test.each([1, 2, 3, 5])("a fair lock on %i endpoints behaves like its model", async (count) => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 2 ** 31 }),
      fc.commands(steps, { maxCommands: 12 }),
      async (seed, commands) => {
        const real = worldOf(seed, count);
        await fc.asyncModelRun(() => ({ model: { line: [] }, real }), commands);
      },
    ),
    seeded(8),
  );
});
