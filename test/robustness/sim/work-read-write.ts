import { keyOf } from "../../../src/redis/keys.ts";
import type { Hold as Handle } from "../../../src/sync/index.ts";
import { ReadWriteLock } from "../../../src/sync/index.ts";
import type { Actor, Stage } from "./actor.ts";
import { refusalOf, spend, wishFor } from "./attempts.ts";
import { giveBack, type Held, hand, judgeRefusal } from "./handles.ts";
import { Holds } from "./holds.ts";
import type { Process } from "./process.ts";
import type { Workload } from "./synchronizers.ts";

const name = "catalogue";
const key = keyOf("redlock", "read-write", name);
const waiting = keyOf("redlock", "writers", name);

/** Readers and writers of one lock. */
export function readWriteWorkload({ world, wire }: Stage): Workload {
  const holds = new Holds(world, "a writer is alone");
  /** Who has yet to write in this turn. */
  const writers = new Set<Process>();

  function note(actor: Actor, handle: Handle, reads: boolean, invoked: number, listens: boolean): Held {
    const nonce = actor.wire.lastRound(actor.process, key)!;
    const group = reads ? "readers" : undefined;
    world.count(reads ? "reading" : "writing");
    return hand(actor, handle, holds, { resources: [name], nonce, invoked, group }, listens);
  }

  /** Longest pauses and timeouts that writers have been given, in ms. */
  let [pause, timeout] = [0, 0];

  /** A writer that no longer asks keeps readers out for a pause and the time that requests take, not for its ttl. */
  function judgeAnnouncements(): void {
    const most = Math.max(500, 1.5 * pause + 2 * timeout);
    for (const server of world.servers) {
      const now = Math.floor(server.time());
      const ids = server.execute(["ZRANGE", waiting, `(${now}`, "+inf", "BYSCORE"]) as string[];
      for (const id of ids) {
        const { process, at } = wire.writer(server, waiting, id)!;
        if (world.now - at <= 1.02 * most + 10) continue;
        world.violate(
          "the dead do not keep others out",
          `${process.name} is announced at ${server.name} since ${at.toFixed()}, for more than ${most.toFixed()} ms`,
        );
      }
    }
  }

  async function perform(actor: Actor): Promise<void> {
    const { draw, redlock } = actor;
    const reads = draw.chance(0.6);
    const lock = new ReadWriteLock(redlock, name);
    const { handle, error, invoked, options } = await wishFor(actor, {
      what: reads ? "read" : "write",
      rounds: 5,
      codes: ["LOCK_HELD", "NO_QUORUM"],
      acquire(given) {
        if (reads) return lock.acquireRead(given);
        pause = Math.max(pause, given.backoff.max);
        timeout = Math.max(timeout, given.timeout);
        return lock.acquireWrite(given);
      },
      tryAcquire: (given) => (reads ? lock.tryAcquireRead(given) : lock.tryAcquireWrite(given)),
    });
    judgeAnnouncements();
    if (!handle) {
      world.count(`${reads ? "read" : "write"}: ${refusalOf(error)}`);
      judgeRefusal(actor, key, error);
      return;
    }
    const listens = draw.chance(0.5) || options.autoExtend;
    await spend(actor, note(actor, handle, reads, invoked, listens), options);
  }

  /** Every other one writes once; meanwhile the others read on and on, and one of them always does. */
  async function turn(actor: Actor, bound: number): Promise<void> {
    const writes = world.processes.indexOf(actor.process) % 2 === 0;
    if (writes) writers.add(actor.process);
    await actor.sleep(0);
    const lock = new ReadWriteLock(actor.redlock, name, { ttl: 5_000, wait: 10 * bound });
    do {
      const invoked = world.now;
      const outcome = await actor.calls.make(
        actor.process,
        `turn to ${writes ? "write" : "read"}`,
        bound,
        [],
        () => {
          [pause, timeout] = [Math.max(pause, 1_000), Math.max(timeout, 1_000)];
          return writes ? lock.acquireWrite() : lock.acquireRead();
        },
      );
      if ("error" in outcome) return;
      const held = note(actor, outcome.value, !writes, invoked, false);
      await actor.sleep(writes ? actor.draw.between(1, 30) : actor.draw.between(300, 600));
      await giveBack(actor, held, 1_000);
      if (writes) writers.delete(actor.process);
    } while (!writes && [...writers].some(({ alive }) => alive));
  }

  return {
    perform,
    turn,
    leftovers: ["redlock:read-write:*", "redlock:writers:*"],
    look: (process) => holds.look(process),
    conclude: () => undefined,
  };
}
