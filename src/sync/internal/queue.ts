import type { Settings } from "../../lock/options.ts";
import { maxSleep } from "../../lock/wake-up/wake-up.ts";
import { type Round, runRound } from "../../quorum/round.ts";
import { quorumOf } from "../../quorum/tally.ts";
import { type CellAnswer, end } from "../../redis/cell.ts";
import { type Runtime, randomToken } from "../../runtime.ts";
import type { HoldStrategy } from "./hold.ts";
import { queuePacer } from "./queue-pacer.ts";
import { fairWaiter, type QueueAnswer, QueueRequests } from "./queue-requests.ts";

// A plain lock with a queue of tickets at every endpoint. The lock alone decides who holds it; the queue only decides who
// may try. A ticket has the same position at every endpoint, so all of them grant the free lock to the same one.

/**
 * A strategy for a lock that is granted in the order of tickets. Each acquire has one ticket, which is added to the queue
 * of every endpoint that refuses it. The pauses depend on how many tickets are ahead, and on how fast they were served.
 */
export function queueStrategy(settings: Settings, name: string): HoldStrategy<QueueAnswer> {
  const { runtime, endpoints, backoff, wait, timeout, wakeUp } = settings;
  const ticket = newTicket(runtime);
  const requests = new QueueRequests(settings, name, ticket);
  const { lock } = requests;
  const pacer = queuePacer(runtime, backoff);
  let value = "";
  let grantingRound: Round<CellAnswer> | undefined;
  let isAcquired = false;
  let ahead: number | undefined;

  /**
   * With `wait: 0` we never join the queue. Otherwise the ticket must outlive one pause plus one request. With wake-ups a
   * waiter may sleep for long: to renew its ticket meanwhile would cost four commands each time.
   */
  function expiry(): number {
    const longest = wakeUp ? Math.min(wait, maxSleep) : pacer.longest();
    return wait > 0 ? Math.ceil(longest + timeout) : 0;
  }

  return {
    // Only those that are about to be served: a message for another has been for another.
    waiter: { kind: fairWaiter, name: ticket, firstTurn: () => ((ahead ?? 0) <= 1 ? 0 : Infinity) },
    keys: () => [lock],
    acquire(call, cell, ttl) {
      value = cell.value;
      return requests.acquire(call, value, { ttl, expiry: expiry() });
    },
    grantedKeys(round) {
      grantingRound = round;
      return [lock];
    },
    release(call, cell, tombstoneTtl, notify) {
      const outcome = grantingRound?.answers[endpoints.indexOf(call.endpoint)]?.outcome;
      // Where the lock was not free yet, or nothing is known, the holder's ticket may be in the queue.
      if (isAcquired && cell.value === value && outcome !== "granted") {
        return requests.remove(call, value);
      }
      // Those behind it must not be granted what it has to ask for again: two that each had a part would take turns.
      if (!isAcquired && wait > 0) {
        return requests.rollBack(call, cell.value, { expiry: expiry(), retention: tombstoneTtl });
      }
      const tombstone = tombstoneTtl > 0 ? requests.tombstoneOf(cell.value) : undefined;
      const held = { ...cell, tombstone };
      return notify ? requests.releaseAndTell(call, held, tombstoneTtl) : end(call, held, { tombstoneTtl });
    },
    acquired() {
      isAcquired = true;
    },
    // Those behind it need not wait until its ticket expires.
    cleanUp() {
      // Without a request it was never queued.
      if (!value || wait === 0) return undefined;
      return runRound({ ...settings, onFailure: undefined }, (call) => requests.remove(call, ticket)).done;
    },
    afterFailedRound({ answers }) {
      const counts = answers.flatMap((answer) => (answer && answer.outcome !== "error" ? answer.ahead : []));
      // The most that are ahead at any endpoint of the most favourable quorum, among those that have answered.
      ahead = counts.sort((a, b) => a - b)[Math.min(quorumOf(answers.length), counts.length) - 1];
      const ms = pacer.pause(ahead);
      return ms === undefined ? undefined : { type: "pause", ms };
    },
  };
}

/** A ticket of this moment. Only the wall clock decides which of two is the earlier. */
function newTicket(runtime: Runtime): string {
  return String(Math.floor(runtime.now())).padStart(16, "0") + randomToken(runtime);
}
