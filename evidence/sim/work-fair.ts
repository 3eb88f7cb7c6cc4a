import { keyOf } from "../../src/redis/keys.ts";
import { FairLock, type Hold as Handle } from "../../src/sync/index.ts";
import { lockModel } from "../linearizability/models.ts";
import { failureKind, runAcquirePlan, useAndRelease } from "./acquire-plan.ts";
import type { Actor, SharedContext } from "./actor.ts";
import { checkRefusal, type HeldHandle, recordHold, release } from "./handles.ts";
import { checkPermits } from "./histories.ts";
import { Holds } from "./holds.ts";
import type { Process } from "./process.ts";
import type { Scenario } from "./scenario.ts";
import type { Workload } from "./synchronizers.ts";
import type { WakeUps } from "./wake-ups.ts";
import type { World } from "./world.ts";

const name = "till";
const key = keyOf("redlock", "fair", name);

/** ms after which every endpoint has a waiter in its queue, while there are no faults. */
const queuedWithin = 25;

/** How long a probe's hold lasts where its process dies, in ms. */
const ttl = 2_000;

/**
 * With wake-ups: ms for which a free lock may be left to the dead. 2 s and a timeout, or 1 s more where their streams are
 * counted; one of the dead may have acquired it.
 */
const mostIdle = 4_000 + ttl;

/** A probe that was served. Times are virtual ms, except `ticket`: the waiter's own clock when it called. */
interface Served {
  readonly by: Process;
  readonly invoked: number;
  readonly ticket: number;
  readonly at: number;
  /** Undefined: its process has died before. */
  released?: number;
}

/** Processes that queue for one fair lock. */
export class FairWorkload implements Workload {
  readonly blockingKeys: readonly string[] = ["redlock:fair:*", "redlock:queue:*"];
  readonly #world: World;
  readonly #scenario: Scenario;
  readonly #wakeUps: WakeUps;
  readonly #holds: Holds;
  readonly #served: Served[] = [];

  constructor({ world, scenario, wakeUps }: SharedContext) {
    this.#world = world;
    this.#wakeUps = wakeUps;
    this.#scenario = scenario;
    this.#holds = new Holds(world, "mutual exclusion");
  }

  async perform(actor: Actor): Promise<void> {
    const lock = new FairLock(actor.redlock, name);
    const { handle, error, invoked, options } = await runAcquirePlan(actor, {
      what: "queue",
      rounds: 5,
      // Only the first in the queue looks, and pauses grow with the queue.
      looks: false,
      pauses: this.#world.processes.length,
      codes: ["LOCK_HELD", "NO_QUORUM"],
      acquire: (given) => lock.acquire(given),
      tryAcquire: (given) => lock.tryAcquire(given),
    });
    if (!handle) {
      this.#world.count(`queue: ${failureKind(error)}`);
      checkRefusal(actor, key, error);
      return;
    }
    const listens = actor.draw.chance(0.5) || options.autoExtend;
    await useAndRelease(actor, this.#record(actor, handle, invoked, listens), options);
  }

  /** Queues twice. The order is checked at the end. */
  async probe(actor: Actor, bound: number): Promise<void> {
    const { process, redlock, calls, draw } = actor;
    if (this.#mayDie(actor) && draw.chance(0.5)) this.#dieInTheQueue(process, draw.between(30, 400));
    for (let round = 0; round < 2; round += 1) {
      await actor.sleep(draw.between(0, 300));
      const invoked = this.#world.now;
      const ticket = process.now();
      const lock = new FairLock(redlock, name, { ttl, wait: 10 * bound });
      const outcome = await calls.make(process, {
        what: "probe: queue",
        bound,
        codes: [],
        run: () => lock.acquire(),
      });
      if ("error" in outcome) return;
      const held = this.#record(actor, outcome.value, invoked, false);
      const served: Served = { by: process, invoked, ticket, at: this.#world.now };
      this.#served.push(served);
      await actor.sleep(draw.between(20, 120));
      await release(actor, held, 1_000);
      served.released = this.#world.now;
    }
  }

  recheck(process: Process): void {
    this.#holds.recheck(process);
  }

  checkAtEnd(): void {
    this.#checkOrder();
    this.#checkIdle();
    checkPermits(this.#world, this.#holds.all, lockModel);
  }

  #record(actor: Actor, handle: Handle, invoked: number, listens: boolean): HeldHandle {
    const nonce = actor.wire.lastRound(actor.process, key)!;
    this.#world.count("served");
    return recordHold(actor, { handle, holds: this.#holds, resources: [name], nonce, invoked, listens });
  }

  /** One of three or more may die, unless a latch or a barrier of the same world waits for everybody. */
  #mayDie({ process }: Actor): boolean {
    const living = this.#world.processes.filter(({ alive }) => alive);
    if (living.length <= 2 || living.at(-1) !== process) return false;
    return !this.#scenario.work.some((kind) => kind === "latch" || kind === "barrier");
  }

  #dieInTheQueue(process: Process, ms: number): void {
    this.#world.count("died in the queue");
    this.#world.scheduler.at(this.#world.now + ms, () => process.kill());
  }

  /** Waiters are served in the order in which they came, as far as their clocks and all endpoints know it. */
  #checkOrder(): void {
    for (const one of this.#served) {
      for (const other of this.#served) {
        const isLater = other.invoked > one.invoked + queuedWithin && other.ticket > one.ticket;
        // Who does not answer a call is skipped.
        if (!isLater || this.#wakeUps.mayHaveMissed(one.by, one.invoked, other.at)) continue;
        this.#world.check(
          "served in order",
          other.at >= one.at,
          () =>
            `${other.by.name} came at ${other.invoked.toFixed()} and was served before ${one.by.name}, who came at ${one.invoked.toFixed()}`,
        );
      }
    }
    this.#world.count("served in order", this.#served.length);
  }
  /** Who waits acquires the lock soon after its release, although others may have died in the queue. */
  #checkIdle(): void {
    const inOrder = [...this.#served].sort((one, other) => one.at - other.at);
    for (const [index, { by, invoked, at }] of inOrder.entries()) {
      const released = inOrder[index - 1]?.released;
      if (released === undefined || !this.#wakeUps.isListening(by)) continue;
      if (this.#wakeUps.mayHaveMissed(by, invoked, at)) continue;
      const idle = at - Math.max(released, invoked);
      const what = () => `nobody held it for ${idle.toFixed()} ms while ${by.name} waited`;
      this.#world.check("a free lock is taken", idle <= mostIdle, what);
    }
  }
}
