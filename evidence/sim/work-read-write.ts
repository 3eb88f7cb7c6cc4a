import { keyOf } from "../../src/redis/keys.ts";
import { type Hold as Handle, ReadWriteLock } from "../../src/sync/index.ts";
import { failureKind, type Options, runAcquirePlan, useAndRelease } from "./acquire-plan.ts";
import type { Actor, SharedContext } from "./actor.ts";
import { checkRefusal, type HeldHandle, recordHold, release } from "./handles.ts";
import { Holds } from "./holds.ts";
import type { Process } from "./process.ts";
import type { Workload } from "./synchronizers.ts";
import type { Wire } from "./wire.ts";
import type { World } from "./world.ts";

const name = "catalogue";
const key = keyOf("redlock", "read-write", name);
const writersKey = keyOf("redlock", "writers", name);

/** A handle that was acquired. */
interface Acquired {
  readonly handle: Handle;
  readonly reads: boolean;
  readonly invoked: number;
  readonly listens: boolean;
}

/** Readers and writers of one lock. */
export class ReadWriteWorkload implements Workload {
  readonly blockingKeys: readonly string[] = ["redlock:read-write:*", "redlock:writers:*"];
  readonly #world: World;
  readonly #wire: Wire;
  readonly #holds: Holds;
  /** The probes that have yet to write. */
  readonly #writers = new Set<Process>();
  /** The longest pause and timeout of any writer so far, in ms. */
  #longestPause = 0;
  #longestTimeout = 0;
  /** The longest pause of one that waits for messages, in ms. */
  readonly #maxFallbackPoll: number;

  constructor({ world, wire, scenario }: SharedContext) {
    this.#maxFallbackPoll = scenario.wakeUps ? 4_000 : 0;
    this.#world = world;
    this.#wire = wire;
    this.#holds = new Holds(world, "a writer is alone");
  }

  async perform(actor: Actor): Promise<void> {
    const { draw, redlock } = actor;
    const reads = draw.chance(0.6);
    const what = reads ? "read" : "write";
    const lock = new ReadWriteLock(redlock, name);
    const { handle, error, invoked, options } = await runAcquirePlan(actor, {
      what,
      rounds: 5,
      // A writer must ask before its announcement expires.
      longestPause: reads ? undefined : 4_000,
      codes: ["LOCK_HELD", "NO_QUORUM"],
      acquire: (given) => {
        if (reads) return lock.acquireRead(given);
        this.#writes(given.backoff.max, given.timeout);
        return lock.acquireWrite(given);
      },
      tryAcquire: (given: Options) => (reads ? lock.tryAcquireRead(given) : lock.tryAcquireWrite(given)),
    });
    this.#checkAnnouncements();
    if (!handle) {
      this.#world.count(`${what}: ${failureKind(error)}`);
      checkRefusal(actor, key, error);
      return;
    }
    const listens = draw.chance(0.5) || options.autoExtend;
    await useAndRelease(actor, this.#record(actor, { handle, reads, invoked, listens }), options);
  }

  /** Every second process writes once. The others read, again and again, until all writers have been served. */
  async probe(actor: Actor, bound: number): Promise<void> {
    const { process, calls, draw } = actor;
    const writes = this.#world.processes.indexOf(process) % 2 === 0;
    if (writes) this.#writers.add(process);
    await actor.sleep(0);
    const lock = new ReadWriteLock(actor.redlock, name, { ttl: 5_000, wait: 10 * bound });
    do {
      const invoked = this.#world.now;
      const outcome = await calls.make(process, {
        what: `probe: ${writes ? "write" : "read"}`,
        bound,
        codes: [],
        run: () => {
          this.#writes(1_000, 1_000);
          return writes ? lock.acquireWrite() : lock.acquireRead();
        },
      });
      if ("error" in outcome) return;
      const acquired = { handle: outcome.value, reads: !writes, invoked, listens: false };
      const held = this.#record(actor, acquired);
      await actor.sleep(writes ? draw.between(1, 30) : draw.between(300, 600));
      await release(actor, held, 1_000);
      if (writes) this.#writers.delete(process);
    } while (!writes && [...this.#writers].some(({ alive }) => alive));
  }

  recheck(process: Process): void {
    this.#holds.recheck(process);
  }

  #writes(pause: number, timeout: number): void {
    this.#longestPause = Math.max(this.#longestPause, pause);
    this.#longestTimeout = Math.max(this.#longestTimeout, timeout);
  }

  #record(actor: Actor, { handle, reads, invoked, listens }: Acquired): HeldHandle {
    const nonce = actor.wire.lastRound(actor.process, key)!;
    const group = reads ? "readers" : undefined;
    this.#world.count(reads ? "reading" : "writing");
    const holds = this.#holds;
    return recordHold(actor, { handle, holds, resources: [name], nonce, invoked, group, listens });
  }

  /** A writer that no longer asks keeps readers out for a pause and its requests' timeouts, not for its ttl. */
  #checkAnnouncements(): void {
    const world = this.#world;
    const pause = Math.max(this.#longestPause, this.#maxFallbackPoll);
    const most = Math.max(500, 1.5 * pause + 2 * this.#longestTimeout);
    for (const server of world.servers) {
      const now = Math.floor(server.time());
      const ids = server.execute(["ZRANGE", writersKey, `(${now}`, "+inf", "BYSCORE"]) as string[];
      for (const id of ids) {
        const { process, at } = this.#wire.announcedWriter(server, writersKey, id)!;
        world.check(
          "the dead do not keep others out",
          world.now - at <= 1.005 * most + 2,
          () =>
            `${process.name} is announced at ${server.name} since ${at.toFixed()}, for more than ${most.toFixed()} ms`,
        );
      }
    }
  }
}
