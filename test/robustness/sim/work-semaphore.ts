import { keyOf } from "../../../src/redis/keys.ts";
import { LimitMismatchError, type Permit, Semaphore } from "../../../src/sync/index.ts";
import { lockModel, semaphoreModel } from "../linearizability/models.ts";
import type { Actor, Stage } from "./actor.ts";
import { invariants } from "./assumptions.ts";
import { refusalOf, spend, wishFor } from "./attempts.ts";
import type { Draw } from "./draw.ts";
import { giveBack, type Held, hand, judgeRefusal } from "./handles.ts";
import { checkPermits } from "./histories.ts";
import { type Hold, Holds } from "./holds.ts";
import type { Workload } from "./synchronizers.ts";

const name = "pool";
const limitKey = keyOf("redlock", "limit", name);

/** A permit that was given out, and the limit that it was asked with. */
interface Issued {
  readonly hold: Hold;
  readonly limit: number;
}

/** Permits of one semaphore, most of them asked for with the same limit. */
export function semaphoreWorkload({ world, scenario }: Stage, draw: Draw): Workload {
  const limit = draw.integer(1, Math.min(3, Math.max(1, scenario.processes - 1)));
  // Somebody who has another limit configured.
  const strangers = draw.chance(0.5) ? 0.3 : 0;
  const slots = new Holds(world, "one holder per slot");
  const issued: Issued[] = [];

  /** Notes a permit, and looks at all that are valid beside it. */
  function issue(actor: Actor, permit: Permit, asked: number, invoked: number, listens: boolean): Held {
    const nonce = actor.wire.lastRound(actor.process, keyOf("redlock", `slot:${permit.slot}`, name))!;
    const resources = [`${name}#${permit.slot}`];
    const held = hand(actor, permit, slots, { resources, nonce, invoked }, listens);
    world.count("permit granted");
    const beside = issued.filter(({ hold }) => hold.ended === undefined && hold.remaining() > 0);
    issued.push({ hold: held.hold, limit: asked });
    const least = Math.min(asked, ...beside.map((other) => other.limit));
    if (permit.slot >= asked || beside.length + 1 > least || beside.some((other) => other.limit !== asked)) {
      const regrown = beside.some(({ hold }) => hold.extensions.regrown);
      world.violate(
        "permits within the limit",
        `${actor.process.name} has slot ${permit.slot} of ${asked} beside ${beside.length} of ${least}`,
        regrown ? [...invariants["permits within the limit"], "single execution"] : undefined,
      );
    }
    return held;
  }

  async function perform(actor: Actor): Promise<void> {
    const asked = actor.draw.chance(strangers) ? limit + 1 : limit;
    const semaphore = new Semaphore(actor.redlock, name, { limit: asked });
    const { handle, error, invoked, options } = await wishFor(actor, {
      what: `acquire a permit of ${asked}`,
      // Each slot may be tried once more when the waiting is over.
      rounds: asked + 4,
      codes: ["LOCK_HELD", "LIMIT_MISMATCH", "NO_QUORUM"],
      acquire: (given) => semaphore.acquire(given),
      tryAcquire: (given) => semaphore.tryAcquire(given),
    });
    if (!handle) {
      judge(actor, error);
      return;
    }
    const listens = actor.draw.chance(0.5) || options.autoExtend;
    await spend(actor, issue(actor, handle, asked, invoked, listens), options);
  }

  async function turn(actor: Actor, bound: number): Promise<void> {
    const { process, redlock, calls } = actor;
    const invoked = world.now;
    const semaphore = new Semaphore(redlock, name, { limit });
    const outcome = await calls.make(process, "turn with a permit", bound, [], async () => {
      for (;;) {
        try {
          return await semaphore.acquire({ ttl: 5_000, wait: 10 * bound });
        } catch (error) {
          // The limit of one who came before stands as long as its permit may.
          if (!(error instanceof LimitMismatchError)) throw error;
          await actor.sleep(100);
        }
      }
    });
    if ("error" in outcome) return;
    const held = issue(actor, outcome.value, limit, invoked, false);
    await actor.sleep(actor.draw.between(1, 30));
    await giveBack(actor, held, 1_000);
  }

  function judge(actor: Actor, error: unknown): void {
    if (error instanceof LimitMismatchError) {
      world.count("permit: another limit");
      if (strangers === 0 || error.inUse === error.limit) {
        world.violate("refusals are true", `${actor.process.name}: ${error.message}`);
      }
      judgeRefusal(actor, limitKey, null);
      return;
    }
    world.count(`permit: ${refusalOf(error)}`);
    judgeRefusal(actor, limitKey, error);
  }

  return {
    perform,
    turn,
    leftovers: ["redlock:slot:*", "redlock:limit:*"],
    look: (process) => slots.look(process),
    conclude() {
      checkPermits(world, slots.all, lockModel);
      const usual = issued.filter((one) => one.limit === limit).map(({ hold }) => hold);
      checkPermits(world, usual, semaphoreModel(limit), name);
    },
  };
}
