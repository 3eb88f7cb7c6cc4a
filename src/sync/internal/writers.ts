import type { Settings } from "../../lock/options.ts";
import { runRound } from "../../quorum/round.ts";
import { tombstoneRetention } from "../../redis/cell.ts";
import { keyOf } from "../../redis/keys.ts";
import { maxTimerDelay, randomToken } from "../../runtime.ts";
import type { HoldStrategy } from "./hold.ts";
import { type Announcement, memberStrategy } from "./members.ts";
import { knownPauses, toldPause } from "./queue-pacer.ts";

const readWrite = "read-write";

/** The group of all readers. Writers' groups are random tokens, which are longer and begin with another letter. */
const readers = "r";

// Readers are one group of members, each writer is a group of its own.

/** A strategy for a reader. All that wait may be served by the same release. */
export function readerStrategy(settings: Settings, name: string): HoldStrategy {
  const key = keyOf(settings.prefix, "writers", name);
  return memberStrategy(settings, name, {
    group: readers,
    waiter: { kind: readWrite, name: readers },
    announced: (operation, _retention, notify) => (operation === "acquire" || notify ? { key } : undefined),
  });
}

/**
 * A strategy for a writer, which is announced from its first refusal until it holds the lock or gives up. Every round
 * renews the announcement; where the writer's process dies, it expires.
 */
export function writerStrategy(settings: Settings, name: string): HoldStrategy {
  const { runtime, prefix, wait, timeout, backoff, wakeUp } = settings;
  // The writer's group, and the id of its announcement.
  const id = randomToken(runtime);
  const writers = keyOf(prefix, "writers", name);
  const key = keyOf(prefix, readWrite, name);
  const pauses = knownPauses(runtime, backoff);
  const told = toldPause(settings);
  let rounds = 0;
  let waits = true;
  const announcement = (retention: number): Announcement => {
    // Without a retention, no late request can follow that a tombstone would have to refuse.
    const tombstone = retention > 0 ? `${keyOf(prefix, "void", name)}:${id}` : undefined;
    // A living writer has sent its next request by then: after the rest of the round, the pause, and the request's way.
    // Timers fire late on a busy machine.
    const longest = Math.max(pauses.longest(), told.longest);
    const expiry = Math.min(maxTimerDelay, Math.ceil(Math.max(500, 1.5 * longest + 2 * timeout)));
    // After a refusal there may be another: an endpoint that grants this round must keep readers out, too.
    return { id, tombstone, expiry, always: rounds > 1 };
  };
  const strategy = memberStrategy(settings, name, {
    group: id,
    waiter: { kind: readWrite },
    announced(operation, retention, notify) {
      // Without waiting, there is no later round that readers would have to make room for. The rollback of a failed round
      // leaves the announcement to the next round.
      const isAnnounced = wait > 0 && (operation === "acquire" || !waits);
      const own = isAnnounced ? announcement(retention) : undefined;
      return own || notify ? { key: writers, own } : undefined;
    },
  });
  return {
    ...strategy,
    keys() {
      rounds += 1;
      return [key];
    },
    // The expiry that the endpoints were sent includes this pause.
    afterFailedRound: (round) => ({ pause: Math.max(pauses.pause(), told.after(round)) }),
    acquired() {
      waits = false;
    },
    cleanUp() {
      waits = false;
      // Nothing was announced: it does not wait, or has ended before its first round.
      if (wait === 0 || rounds === 0) return undefined;
      const own = { keys: [key], value: id };
      return runRound({ ...settings, onFailure: undefined }, (call) =>
        strategy.release(call, own, tombstoneRetention, !!wakeUp),
      ).done;
    },
  };
}
