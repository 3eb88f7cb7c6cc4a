import { FairLock } from "../../../src/sync/index.ts";
import type { Draw } from "../draw.ts";
import type { Process } from "../world/process.ts";
import { goodNetwork } from "../world/world.ts";
import type { Actor, SharedContext } from "./actor.ts";
import { HoldWorkload } from "./hold.ts";

/** ms after which every endpoint has a waiter in its queue, while there are no faults. */
const queuedWithin = 25;

/** How long a probe's hold lasts where its process dies, in ms. */
const probeTtl = 2_000;

/**
 * With wake-ups: ms for which a free lock may be left to the dead, whose tickets expire; one of the dead may have acquired it.
 */
const mostIdle = 4_000 + probeTtl;

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
export class FairWorkload extends HoldWorkload {
  readonly blockingKeys = ["redlock:fair:*", "redlock:queue:*"];
  readonly patience: number;
  readonly #served: Served[] = [];
  /** The share of replies that get lost while the order is checked. */
  readonly #losses: number;

  constructor(shared: SharedContext, draw: Draw) {
    super(shared, "fair", "till", "mutual exclusion");
    const { wakeUps, processes } = shared.scenario;
    this.#losses = wakeUps ? 0 : draw.pick([0, 0.05, 0.15]);
    // A lost reply may keep the lock, or a place in the queue, for a timeout.
    this.patience = this.#losses > 0 ? 10_000 * processes : 0;
  }

  perform(actor: Actor): Promise<void> {
    const lock = new FairLock(actor.redlock, this.name);
    return this.use(actor, {
      counted: "served",
      what: "queue",
      rounds: 5,
      // Pauses grow with the queue.
      pauses: this.shared.world.processes.length,
      acquire: (how, given, note) => lock[how]({ ...given, note }),
    });
  }

  /** Queues twice, or more often while replies get lost. The order is checked at the end. */
  async probe(actor: Actor, bound: number): Promise<void> {
    const { process, redlock, draw, world } = actor;
    if (this.#mayDie(actor) && draw.chance(0.5)) this.#dieInTheQueue(process, draw.between(30, 400));
    if (this.#losses > 0) this.#loseReplies();
    for (let rounds = this.#losses > 0 ? 6 : 2; rounds > 0; rounds -= 1) {
      await actor.sleep(draw.between(0, 300));
      const [invoked, ticket] = [world.now, process.wallClock()];
      const lock = new FairLock(redlock, this.name, { ttl: probeTtl, wait: 10 * bound });
      let served: Served | undefined;
      const isServed = await this.serve(actor, bound, {
        what: "queue",
        counted: "served",
        run: () => lock.acquire(),
        served: () => {
          served = { by: process, invoked, ticket, at: world.now };
          this.#served.push(served);
        },
        length: () => draw.between(20, 120),
      });
      if (!isServed) return;
      served!.released = world.now;
    }
  }

  checkAtEnd(): void {
    this.#checkOrder();
    this.#checkIdle();
  }

  #loseReplies(): void {
    this.shared.world.network = { ...goodNetwork, loseReply: this.#losses, loseRepliesOf: this.key };
  }

  /** One of three or more may die, unless a latch or a barrier of the same world waits for everybody. */
  #mayDie({ process }: Actor): boolean {
    const { world, scenario } = this.shared;
    const living = world.processes.filter(({ alive }) => alive);
    if (living.length <= 2 || living.at(-1) !== process) return false;
    return !scenario.work.some((kind) => kind === "latch" || kind === "barrier");
  }

  #dieInTheQueue(process: Process, ms: number): void {
    const { world } = this.shared;
    world.count("died in the queue");
    world.scheduler.at(world.now + ms, () => process.kill());
  }

  /** Waiters are served in the order in which they came, as far as their clocks and all endpoints know it. */
  #checkOrder(): void {
    const { world } = this.shared;
    for (const one of this.#served) {
      for (const other of this.#served) {
        const isLater = other.invoked > one.invoked + queuedWithin && other.ticket > one.ticket;
        if (!isLater) continue;
        const what = () =>
          `${other.by.name} came at ${other.invoked.toFixed()} and was served before ${one.by.name}, who came at ${one.invoked.toFixed()}`;
        world.check("served in order", other.at >= one.at, what);
      }
    }
    world.count("served in order", this.#served.length);
  }

  /** Who waits acquires the lock soon after its release, although others may have died in the queue. */
  #checkIdle(): void {
    const { world, wakeUps } = this.shared;
    const inOrder = [...this.#served].sort((one, other) => one.at - other.at);
    for (const [index, { by, invoked, at }] of inOrder.entries()) {
      const released = inOrder[index - 1]?.released;
      if (released === undefined || !wakeUps.isListening(by)) continue;
      const idle = at - Math.max(released, invoked);
      const what = () => `nobody held it for ${idle.toFixed()} ms while ${by.name} waited`;
      world.check("a free lock is taken", idle <= mostIdle, what);
    }
  }
}
