import { keyOf } from "../../../src/redis/keys.ts";
import { FairLock, type Hold as Handle } from "../../../src/sync/index.ts";
import { lockModel } from "../linearizability/models.ts";
import type { Actor, Stage } from "./actor.ts";
import { refusalOf, spend, wishFor } from "./attempts.ts";
import { giveBack, type Held, hand, judgeRefusal } from "./handles.ts";
import { checkPermits } from "./histories.ts";
import { Holds } from "./holds.ts";
import type { Workload } from "./synchronizers.ts";

const name = "till";
const key = keyOf("redlock", "fair", name);

// In ms, by when everybody has been told to wait, while nothing is wrong.
const heard = 60;

/** One who has waited for its turn: since when, by true time and by its own clock, and when it came. */
interface Turn {
  readonly by: string;
  readonly invoked: number;
  readonly ticket: number;
  readonly served: number;
}

/** Those who wait for one lock in the order in which they came. */
export function fairWorkload({ world, scenario }: Stage): Workload {
  const holds = new Holds(world, "mutual exclusion");
  const turns: Turn[] = [];

  function note(actor: Actor, handle: Handle, invoked: number, listens: boolean): Held {
    const nonce = actor.wire.lastRound(actor.process, key)!;
    world.count("served");
    return hand(actor, handle, holds, { resources: [name], nonce, invoked }, listens);
  }

  async function perform(actor: Actor): Promise<void> {
    const lock = new FairLock(actor.redlock, name);
    const { handle, error, invoked, options } = await wishFor(actor, {
      what: "queue",
      rounds: 5,
      codes: ["LOCK_HELD", "NO_QUORUM"],
      acquire: (given) => lock.acquire(given),
      tryAcquire: (given) => lock.tryAcquire(given),
    });
    if (!handle) {
      world.count(`queue: ${refusalOf(error)}`);
      judgeRefusal(actor, key, error);
      return;
    }
    const listens = actor.draw.chance(0.5) || options.autoExtend;
    await spend(actor, note(actor, handle, invoked, listens), options);
  }

  /** They come one after another, and go in that order, as far as their clocks tell it and all endpoints answer. */
  async function turn(actor: Actor, bound: number): Promise<void> {
    const living = world.processes.filter(({ alive }) => alive);
    const isLast = living.length > 2 && living.at(-1) === actor.process;
    // Where others do not count on everybody to come.
    if (
      isLast &&
      !scenario.work.some((kind) => kind === "latch" || kind === "barrier") &&
      actor.draw.chance(0.5)
    ) {
      world.count("died in the queue");
      world.scheduler.at(world.now + actor.draw.between(30, 400), () => actor.process.kill());
    }
    const { process, redlock, calls, draw } = actor;
    for (let left = 2; left > 0; left -= 1) {
      await actor.sleep(draw.between(0, 300));
      const invoked = world.now;
      const ticket = process.now();
      const lock = new FairLock(redlock, name, { ttl: 5_000, wait: 10 * bound });
      const outcome = await calls.make(process, "turn in the queue", bound, [], () => lock.acquire());
      if ("error" in outcome) return;
      const held = note(actor, outcome.value, invoked, false);
      turns.push({ by: process.name, invoked, ticket, served: world.now });
      await actor.sleep(draw.between(20, 120));
      await giveBack(actor, held, 1_000);
    }
  }

  function checkOrder(): void {
    if (scenario.silentMinority) return;
    for (const one of turns) {
      for (const other of turns) {
        const isLater = other.invoked > one.invoked + heard && other.ticket > one.ticket;
        if (!isLater || other.served >= one.served) continue;
        world.violate(
          "served in order",
          `${other.by} came at ${other.invoked.toFixed()} and was served before ${one.by}, who came at ${one.invoked.toFixed()}`,
        );
      }
    }
    world.count("served in order", turns.length);
  }

  return {
    perform,
    turn,
    leftovers: ["redlock:fair:*", "redlock:queue:*"],
    look: (process) => holds.look(process),
    conclude() {
      checkOrder();
      checkPermits(world, holds.all, lockModel);
    },
  };
}
