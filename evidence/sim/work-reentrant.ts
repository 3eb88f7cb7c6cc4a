import { keyOf } from "../../src/redis/keys.ts";
import { type Hold as Handle, ReentrantLock } from "../../src/sync/index.ts";
import { failureKind, runAcquirePlan, useAndRelease } from "./acquire-plan.ts";
import type { Actor, SharedContext } from "./actor.ts";
import { checkRefusal, type HeldHandle, recordHold, release } from "./handles.ts";
import { Holds } from "./holds.ts";
import type { Process } from "./process.ts";
import type { Workload } from "./synchronizers.ts";
import type { World } from "./world.ts";

const name = "account";
const key = keyOf("redlock", "reentrant", name);

/** A handle that was acquired. */
interface Acquired {
  readonly handle: Handle;
  readonly owner: string;
  readonly invoked: number;
  readonly listens: boolean;
}

/** Owners, some of them in several processes, that acquire one lock, and acquire it again while they hold it. */
export class ReentrantWorkload implements Workload {
  readonly blockingKeys: readonly string[] = ["redlock:reentrant:*"];
  readonly #world: World;
  readonly #holds: Holds;

  constructor({ world }: SharedContext) {
    this.#world = world;
    this.#holds = new Holds(world, "one owner at a time");
  }

  perform(actor: Actor): Promise<void> {
    return this.#enter(actor, actor.draw.pick([actor.process.name, "owner-1", "owner-2"]), 0);
  }

  async probe(actor: Actor, bound: number): Promise<void> {
    const { process, redlock, calls } = actor;
    const invoked = this.#world.now;
    const owner = process.name;
    const lock = new ReentrantLock(redlock, name, { owner, ttl: 5_000, wait: 10 * bound });
    const outcome = await calls.make(process, {
      what: "probe: enter",
      bound,
      codes: [],
      run: () => lock.acquire(),
    });
    if ("error" in outcome) return;
    const held = this.#record(actor, { handle: outcome.value, owner, invoked, listens: false });
    await actor.sleep(actor.draw.between(1, 30));
    await release(actor, held, 1_000);
  }

  recheck(process: Process): void {
    this.#holds.recheck(process);
  }

  /** Acquires as an owner, and perhaps once more before the release. */
  async #enter(actor: Actor, owner: string, depth: number): Promise<void> {
    const { draw, redlock } = actor;
    const lock = new ReentrantLock(redlock, name, { owner });
    const { handle, error, invoked, options } = await runAcquirePlan(actor, {
      what: `enter as ${owner}`,
      rounds: 4,
      codes: ["LOCK_HELD", "NO_QUORUM"],
      acquire: (given) => lock.acquire(given),
      tryAcquire: (given) => lock.tryAcquire(given),
    });
    if (!handle) {
      this.#world.count(`enter: ${failureKind(error)}`);
      checkRefusal(actor, key, error);
      return;
    }
    const listens = draw.chance(0.5) || options.autoExtend;
    const held = this.#record(actor, { handle, owner, invoked, listens });
    if (depth < 2 && draw.chance(0.4)) {
      this.#world.count("entered again");
      await this.#enter(actor, owner, depth + 1);
    }
    await useAndRelease(actor, held, options);
  }

  #record(actor: Actor, { handle, owner, invoked, listens }: Acquired): HeldHandle {
    const nonce = actor.wire.lastRound(actor.process, key)!;
    this.#world.count("entered");
    const holds = this.#holds;
    return recordHold(actor, { handle, holds, resources: [name], nonce, invoked, group: owner, listens });
  }
}
