import { keyOf } from "../../../src/redis/keys.ts";
import { type Hold as Handle, ReentrantLock } from "../../../src/sync/index.ts";
import type { Actor, Stage } from "./actor.ts";
import { refusalOf, spend, wishFor } from "./attempts.ts";
import { giveBack, type Held, hand, judgeRefusal } from "./handles.ts";
import { Holds } from "./holds.ts";
import type { Workload } from "./synchronizers.ts";

const name = "account";
const key = keyOf("redlock", "reentrant", name);

/** Owners, some of them in several processes, that take one lock, and take it again while they hold it. */
export function reentrantWorkload({ world }: Stage): Workload {
  const holds = new Holds(world, "one owner at a time");

  function note(actor: Actor, handle: Handle, group: string, invoked: number, listens: boolean): Held {
    const nonce = actor.wire.lastRound(actor.process, key)!;
    world.count("entered");
    return hand(actor, handle, holds, { resources: [name], nonce, invoked, group }, listens);
  }

  /** Enters as an owner, and perhaps once more before it leaves. */
  async function enter(actor: Actor, owner: string, depth: number): Promise<void> {
    const { draw, redlock } = actor;
    const lock = new ReentrantLock(redlock, name, { owner });
    const { handle, error, invoked, options } = await wishFor(actor, {
      what: `enter as ${owner}`,
      rounds: 4,
      codes: ["LOCK_HELD", "NO_QUORUM"],
      acquire: (given) => lock.acquire(given),
      tryAcquire: (given) => lock.tryAcquire(given),
    });
    if (!handle) {
      world.count(`enter: ${refusalOf(error)}`);
      judgeRefusal(actor, key, error);
      return;
    }
    const held = note(actor, handle, owner, invoked, draw.chance(0.5) || options.autoExtend);
    if (depth < 2 && draw.chance(0.4)) {
      world.count("entered again");
      await enter(actor, owner, depth + 1);
    }
    await spend(actor, held, options);
  }

  async function turn(actor: Actor, bound: number): Promise<void> {
    const { process, redlock, calls } = actor;
    const invoked = world.now;
    const lock = new ReentrantLock(redlock, name, { owner: process.name, ttl: 5_000, wait: 10 * bound });
    const outcome = await calls.make(process, "turn to enter", bound, [], () => lock.acquire());
    if ("error" in outcome) return;
    const held = note(actor, outcome.value, process.name, invoked, false);
    await actor.sleep(actor.draw.between(1, 30));
    await giveBack(actor, held, 1_000);
  }

  return {
    perform: (actor) => enter(actor, actor.draw.pick([actor.process.name, "owner-1", "owner-2"]), 0),
    turn,
    leftovers: ["redlock:reentrant:*"],
    look: (process) => holds.look(process),
    conclude: () => undefined,
  };
}
