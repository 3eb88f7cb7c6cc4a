import { keyOf } from "../../src/redis/keys.ts";
import { LimitMismatchError, type Permit, Semaphore } from "../../src/sync/index.ts";
import { lockModel, semaphoreModel } from "../linearizability/models.ts";
import { failureKind, runAcquirePlan, useAndRelease } from "./acquire-plan.ts";
import type { Actor, SharedContext } from "./actor.ts";
import { invariants } from "./assumptions.ts";
import type { Draw } from "./draw.ts";
import { checkRefusal, type HeldHandle, recordHold, release } from "./handles.ts";
import { checkPermits } from "./histories.ts";
import { type Hold, Holds } from "./holds.ts";
import type { Process } from "./process.ts";
import type { Workload } from "./synchronizers.ts";
import type { World } from "./world.ts";

const name = "pool";
const limitKey = keyOf("redlock", "limit", name);

/** A permit that was acquired. */
interface Acquired {
  readonly permit: Permit;
  /** The limit that its semaphore was created with. */
  readonly limit: number;
  readonly invoked: number;
  readonly listens: boolean;
}

/** A hold of a permit, and the limit that its semaphore was created with. */
interface IssuedPermit {
  readonly hold: Hold;
  readonly limit: number;
}

/** Permits of one semaphore. In some worlds a part of the processes have another limit configured. */
export class SemaphoreWorkload implements Workload {
  readonly blockingKeys: readonly string[] = ["redlock:slot:*", "redlock:limit:*"];
  readonly #world: World;
  readonly #limit: number;
  /** The share of acquires with a limit of one more. */
  readonly #mismatches: number;
  readonly #slots: Holds;
  readonly #issued: IssuedPermit[] = [];

  constructor({ world, scenario }: SharedContext, draw: Draw) {
    this.#world = world;
    this.#limit = draw.integer(1, Math.min(3, Math.max(1, scenario.processes - 1)));
    this.#mismatches = draw.chance(0.5) ? 0.3 : 0;
    this.#slots = new Holds(world, "one holder per slot");
  }

  async perform(actor: Actor): Promise<void> {
    const limit = actor.draw.chance(this.#mismatches) ? this.#limit + 1 : this.#limit;
    const semaphore = new Semaphore(actor.redlock, name, { limit });
    const { handle, error, invoked, options } = await runAcquirePlan(actor, {
      what: `acquire a permit of ${limit}`,
      // Each slot may be tried once more when the waiting is over.
      rounds: limit + 4,
      codes: ["LOCK_HELD", "LIMIT_MISMATCH", "NO_QUORUM"],
      acquire: (given) => semaphore.acquire(given),
      tryAcquire: (given) => semaphore.tryAcquire(given),
    });
    if (!handle) {
      this.#checkFailure(actor, error);
      return;
    }
    const listens = actor.draw.chance(0.5) || options.autoExtend;
    const held = this.#record(actor, { permit: handle, limit, invoked, listens });
    await useAndRelease(actor, held, options);
  }

  async probe(actor: Actor, bound: number): Promise<void> {
    const { process, redlock, calls } = actor;
    const invoked = this.#world.now;
    const limit = this.#limit;
    const semaphore = new Semaphore(redlock, name, { limit });
    const outcome = await calls.make(process, {
      what: "probe: acquire a permit",
      bound,
      codes: [],
      run: () => semaphore.acquire({ ttl: 5_000, wait: 10 * bound }),
    });
    if ("error" in outcome) return;
    const held = this.#record(actor, { permit: outcome.value, limit, invoked, listens: false });
    await actor.sleep(actor.draw.between(1, 30));
    await release(actor, held, 1_000);
  }

  recheck(process: Process): void {
    this.#slots.recheck(process);
  }

  checkAtEnd(): void {
    checkPermits(this.#world, this.#slots.all, lockModel);
    const limit = this.#limit;
    const usual = this.#issued.filter((permit) => permit.limit === limit).map(({ hold }) => hold);
    checkPermits(this.#world, usual, semaphoreModel(limit), name);
  }

  /** Records a permit, and checks its slot and the permits that are valid beside it. */
  #record(actor: Actor, { permit, limit, invoked, listens }: Acquired): HeldHandle {
    const world = this.#world;
    const { slot } = permit;
    const key = keyOf("redlock", `slot:${slot}`, name);
    const nonce = actor.wire.lastRound(actor.process, key)!;
    const resources = [`${name}#${slot}`];
    const holds = this.#slots;
    const grant = { handle: permit, keys: [key], resources, nonce, invoked, listens };
    const held = recordHold(actor, { ...grant, holds });
    world.count("permit granted");
    const beside = this.#issued.filter(({ hold }) => hold.ended === undefined && hold.remaining() > 0);
    this.#issued.push({ hold: held.hold, limit });
    const least = Math.min(limit, ...beside.map((other) => other.limit));
    const regrown = beside.some(({ hold }) => hold.extensions.regrown);
    world.check(
      "permits within the limit",
      slot < limit && beside.length + 1 <= least && beside.every((other) => other.limit === limit),
      () => `${actor.process.name} has slot ${slot} of ${limit} beside ${beside.length} of ${least}`,
      regrown ? [...invariants["permits within the limit"], "single execution"] : undefined,
    );
    return held;
  }

  #checkFailure(actor: Actor, error: unknown): void {
    if (!(error instanceof LimitMismatchError)) {
      this.#world.count(`permit: ${failureKind(error)}`);
      checkRefusal(actor, limitKey, error);
      return;
    }
    this.#world.count("permit: another limit");
    const isTrue = this.#mismatches > 0 && error.inUse !== error.limit;
    this.#world.check("refusals are true", isTrue, () => `${actor.process.name}: ${error.message}`);
    checkRefusal(actor, limitKey, null);
  }
}
