import { tombstoneRetention } from "../../lock/lock-request.ts";
import { type Settings, timeUntil } from "../../lock/options.ts";
import { maxFallbackPoll } from "../../lock/wake-up/wake-up.ts";
import { pauses } from "../../quorum/backoff.ts";
import { rollback } from "../../quorum/rollback.ts";
import { keyOf } from "../../redis/keys.ts";
import { maxTimerDelay, randomToken } from "../../runtime.ts";
import type { HoldStrategy } from "./hold.ts";
import {
  type Announcements,
  acquireMember,
  type Membership,
  memberOf,
  memberStrategy,
  membershipOf,
  releaseMember,
} from "./members.ts";

/** Where the members of a read-write lock are stored, and the announcements of its waiting writers. */
interface ReadWriteKeys {
  readonly membership: Membership;
  readonly writers: string;
}

const readWrite = "read-write";

/** The group of all readers. Writers' groups are random tokens, which are longer and begin with another letter. */
const readers = "r";

/** The keys of a read-write lock: readers are one group of members, each writer is a group of its own. */
function readWriteKeys(settings: Settings, name: string): ReadWriteKeys {
  return {
    membership: membershipOf(settings, readWrite, name),
    writers: keyOf(settings.prefix, "writers", name),
  };
}

/** A strategy for a reader. All that wait may be served by the same release. */
export function readerStrategy(settings: Settings, name: string): HoldStrategy {
  const { membership, writers } = readWriteKeys(settings, name);
  const waiter = { kind: readWrite, name: readers, firstTurn: () => 0 };
  return memberStrategy(membership, readers, waiter, { key: writers });
}

/**
 * A strategy for a writer, which is announced from its first refusal until it holds the lock or gives up. Every round
 * renews the announcement; where the writer's process dies, it expires.
 *
 * @throws RangeError when the deadline has passed
 */
export function writerStrategy(settings: Settings, name: string, deadline: number = Infinity): HoldStrategy {
  const { runtime, wait, timeout, backoff, wakeUp } = settings;
  // The writer's group, and the id of its announcement.
  const id = randomToken(runtime);
  const { membership, writers } = readWriteKeys(settings, name);
  const { key, tombstones } = membership;
  const nextPause = pauses(backoff, runtime);
  let pause = nextPause();
  let rounds = 0;
  let waits = true;
  const announcements = (retention: number): Announcements | undefined => {
    // Without waiting, there is no later round that readers would have to make room for.
    if (wait === 0) return undefined;
    // Without a retention, no late request can follow that a tombstone would have to refuse.
    const tombstone = retention > 0 ? `${tombstones}:${id}` : undefined;
    // A living writer has sent its next request by then: after the rest of the round, the pause, and the request's way.
    // Timers fire late on a busy machine.
    const longest = wakeUp ? Math.max(pause, maxFallbackPoll) : pause;
    const expiry = Math.min(maxTimerDelay, Math.ceil(Math.max(500, 1.5 * longest + 2 * timeout)));
    // After a refusal there may be another: an endpoint that grants this round must keep readers out, too.
    return { key: writers, own: { id, tombstone, expiry, always: rounds > 1 } };
  };
  // Before the first request, so that a deadline that has passed leaves nothing to remove.
  timeUntil(deadline, runtime);
  return {
    ...memberStrategy(membership, id, { kind: readWrite, name: "w", longestPause: maxFallbackPoll }),
    keys() {
      rounds += 1;
      return [key];
    },
    acquire: (call, cell, ttl) =>
      acquireMember(call, memberOf(cell, id, membership), ttl, announcements(ttl)),
    release(call, cell, retention, notify) {
      const channel = notify ? membership.channel : undefined;
      // The rollback of a failed round leaves the announcement to the next round.
      const announced = waits ? undefined : announcements(retention);
      return releaseMember(call, memberOf(cell, id, membership), {
        retention: retention || membership.memory,
        announcements: announced ?? (channel ? { key: writers } : undefined),
        channel,
      });
    },
    // The expiry that the endpoints were sent includes this pause.
    afterFailedRound() {
      const announcedPause = pause;
      pause = nextPause();
      return { type: "pause", ms: announcedPause };
    },
    acquired() {
      waits = false;
    },
    cleanUp() {
      waits = false;
      const announced = announcements(tombstoneRetention);
      // Nothing was announced: it does not wait, or was aborted before its first round.
      if (!announced || rounds === 0) return undefined;
      const own = { keys: [key], value: id };
      const release = {
        retention: tombstoneRetention,
        announcements: announced,
        channel: membership.channel,
      };
      return rollback(settings, undefined, (call) => releaseMember(call, own, release)).done;
    },
  };
}
