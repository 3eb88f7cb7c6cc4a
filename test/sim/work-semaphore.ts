import { keyOf } from "../../src/grant.ts";
import { LockHeldError, QuorumError } from "../../src/index.ts";
import { LimitMismatchError, type Permit, Semaphore } from "../../src/sync/index.ts";
import { lockModel, semaphoreModel } from "../linearizability/models.ts";
import { type Actor, drawOptions, type Stage } from "./actor.ts";
import { invariants } from "./assumptions.ts";
import type { Draw } from "./draw.ts";
import { boundRenewals, giveBack, type Held, hand, judgeRefusal, useHandle } from "./handles.ts";
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
  const strangers = draw.chance(0.3) ? 0.15 : 0;
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
    const { process, redlock, calls, kept } = actor;
    const options = drawOptions(actor);
    const { fencing: _, ...rest } = options;
    const asked = actor.draw.chance(strangers) ? limit + 1 : limit;
    const autoExtend = actor.draw.chance(0.3);
    const abort = actor.draw.chance(0.1) ? new AbortController() : undefined;
    if (abort) process.timer(actor.draw.between(0, options.ttl), () => abort.abort(new Error("given up")));
    const once = actor.draw.chance(0.2);
    const maxHold = actor.draw.pick([options.ttl, 3 * options.ttl]);
    const invoked = world.now;
    const semaphore = new Semaphore(redlock, name, { limit: asked });
    const settings = { ...rest, autoExtend, maxHold, signal: abort?.signal };
    const outcome = await calls.make(
      process,
      `${once ? "tryAcquire" : "acquire"} a permit of ${asked} ${JSON.stringify(rest)}`,
      // Each slot may be tried once more when the waiting is over.
      (once ? 0 : options.wait) + (asked + 4) * Math.min(options.timeout, options.ttl),
      ["LOCK_HELD", "LIMIT_MISMATCH", "NO_QUORUM"],
      () => (once ? semaphore.tryAcquire(settings) : semaphore.acquire(settings)),
      (error) => abort?.signal.reason === error,
    );
    const permit = "value" in outcome ? outcome.value : undefined;
    if (!permit) {
      judge(actor, "value" in outcome ? null : outcome.error);
      return;
    }
    const held = issue(actor, permit, asked, invoked, actor.draw.chance(0.5) || autoExtend);
    const plan = actor.draw.fraction();
    if (plan < 0.08) kept.add(held.hold.nonce); // its holder forgets it
    const extensions = await useHandle(actor, held, options.timeout);
    if (plan >= 0.08) await giveBack(actor, held, options.timeout);
    if (plan > 0.95) await giveBack(actor, held, options.timeout);
    boundRenewals(actor, held.hold, extensions, options.backoff.min);
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
    const held = error === null || error instanceof LockHeldError;
    world.count(held ? "permit refused" : error instanceof QuorumError ? "permit: no quorum" : "aborted");
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
