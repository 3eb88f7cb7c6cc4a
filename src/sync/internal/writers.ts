import { tombstoneRetention } from "../../lock/lock-request.ts";
import { type Settings, timeUntil } from "../../lock/options.ts";
import { pauses } from "../../quorum/backoff.ts";
import { rollback } from "../../quorum/rollback.ts";
import { keyOf } from "../../redis/keys.ts";
import { maxTimerDelay, randomToken } from "../../runtime.ts";
import type { HoldStrategy } from "./hold.ts";
import {
  type Announcements,
  acquireMember,
  type Membership,
  memberStrategy,
  membershipOf,
  releaseMember,
  withTombstone,
} from "./members.ts";

/** Key of the announcements of the writers that wait for a read-write lock. */
export function writersKey(prefix: string, name: string): string {
  return keyOf(prefix, "writers", name);
}

/** The members of a read-write lock: readers are one group, each writer is a group of its own. */
export function readWriteMembership(settings: Settings, name: string): Membership {
  return membershipOf(settings, "read-write", name);
}

/**
 * A strategy for a writer, which is announced from its first refusal until it holds the lock or gives up. Every round
 * renews the announcement; where the writer's process dies, it expires.
 *
 * @throws RangeError when the deadline has passed
 */
export function writerStrategy(settings: Settings, name: string, deadline: number = Infinity): HoldStrategy {
  const { runtime, prefix, wait, timeout, backoff } = settings;
  // The writer's group, and the id of its announcement.
  const id = randomToken(runtime);
  const membership = readWriteMembership(settings, name);
  const { key, tombstones } = membership;
  const nextPause = pauses(backoff, runtime);
  let pause = nextPause();
  let rounds = 0;
  let waits = true;
  const announcements = (): Announcements | undefined => {
    // Without waiting, there is no later round that readers would have to make room for.
    if (wait === 0) return undefined;
    const expiry = announcementExpiry(pause, timeout);
    // After a refusal there may be another: an endpoint that grants this round must keep readers out, too.
    const own = { id, tombstone: `${tombstones}:${id}`, expiry, always: rounds > 1 };
    return { key: writersKey(prefix, name), own };
  };
  // Before the first request, so that a deadline that has passed leaves nothing to remove.
  timeUntil(deadline, runtime);
  return {
    ...memberStrategy(membership, id),
    keys() {
      rounds += 1;
      return [key];
    },
    acquire: (call, register, ttl) => acquireMember(call, register, ttl, announcements()),
    release(call, register, retention) {
      // The rollback of a failed round leaves the announcement to the next round.
      const announced = waits ? undefined : announcements();
      // A tombstone of the announcement refuses late requests; where there are none, it is of no use.
      const removed = retention > 0 ? announced : withoutTombstone(announced);
      return releaseMember(
        call,
        withTombstone(register, membership),
        retention || membership.memory,
        removed,
      );
    },
    // The expiry that the endpoints were sent includes this pause.
    afterFailedRound() {
      const announcedPause = pause;
      pause = nextPause();
      return announcedPause;
    },
    acquired() {
      waits = false;
    },
    cleanUp() {
      waits = false;
      const announced = announcements();
      if (!announced) return undefined;
      const own = { keys: [key], value: id };
      return rollback(settings, undefined, (call) => releaseMember(call, own, tombstoneRetention, announced))
        .done;
    },
  };
}

function withoutTombstone(announcements: Announcements | undefined): Announcements | undefined {
  if (!announcements?.own) return announcements;
  return { ...announcements, own: { ...announcements.own, tombstone: undefined } };
}

/**
 * ms until the announcement of a round expires. A living writer has sent its next request by then: after the rest of the
 * round, the pause, and the request's way. Timers fire late on a busy machine.
 */
function announcementExpiry(pause: number, timeout: number): number {
  return Math.min(maxTimerDelay, Math.ceil(Math.max(500, 1.5 * pause + 2 * timeout)));
}
