import type { HoldStrategy } from "../../bridge/strategy.ts";
import type { Ask } from "../../endpoints/ask.ts";
import { parseHolder } from "../../lock/note.ts";
import type { Settings } from "../../lock/options.ts";
import { type Round, runRound } from "../../quorum/round.ts";
import { quorumOf } from "../../quorum/tally.ts";
import { type CellAnswer, end, tombstoneRetention } from "../../redis/cell.ts";
import { keyOf } from "../../redis/keys.ts";
import { runScript, unexpectedReply } from "../../redis/script.ts";
import { type Runtime, randomToken } from "../../runtime.ts";
import { channelOf } from "../../wake-up/channel.ts";
import { queueScript } from "./queue.lua.ts";
import { queuePacer, toldPause } from "./queue-pacer.ts";
import { isInteger, itemsOf } from "./reply.ts";

// A plain lock with a queue of tickets at every endpoint. The lock alone decides who holds it; the queue only decides who
// may try. A ticket has the same position at every endpoint, so all of them grant the free lock to the same one.

/**
 * A strategy for a lock that is granted in the order of tickets. Each acquire has one ticket, which is added to the queue
 * of every endpoint that refuses it. The pauses depend on how many tickets are ahead, and on how fast they were served.
 */
export function queueStrategy(settings: Settings, name: string): HoldStrategy<QueueAnswer> {
  const { runtime, backoff, wait, timeout } = settings;
  const ticket = newTicket(runtime);
  const requests = new QueueRequests(settings, name, ticket);
  const { lock } = requests;
  const pacer = queuePacer(runtime, backoff);
  const told = toldPause(settings);
  let value = "";
  let grantingRound: Round<CellAnswer> | undefined;
  let isAcquired = false;

  /** With `wait: 0` we never join the queue. Otherwise the ticket must outlive one pause plus one request. */
  function expiry(): number {
    return wait > 0 ? Math.ceil(Math.max(pacer.longest(), 1.5 * told.longest) + timeout) : 0;
  }

  return {
    waiter: { kind: fairWaiter, name: ticket },
    keys: () => [lock],
    acquire(call, cell, ttl) {
      value = cell.value;
      return requests.acquire(call, value, { ttl, expiry: expiry() });
    },
    granted(round) {
      grantingRound = round;
      return undefined;
    },
    release(call, cell, tombstoneTtl, notify) {
      const claim = grantingRound?.calls.find(({ endpoint }) => endpoint === call.endpoint);
      const outcome = claim?.answer?.outcome;
      // Where the lock was not free yet, or nothing is known, the holder's ticket may be in the queue.
      if (isAcquired && cell.value === value && outcome !== "granted") {
        return requests.remove(call, value);
      }
      // Those behind it must not be granted what it has to ask for again: two that each had a part would take turns.
      if (!isAcquired && wait > 0) {
        return requests.rollBack(call, cell.value, { expiry: expiry(), retention: tombstoneTtl });
      }
      if (notify) return requests.releaseAndTell(call, cell.value, tombstoneTtl);
      const tombstone = tombstoneTtl > 0 ? requests.tombstoneOf(cell.value) : undefined;
      return end(call, { ...cell, tombstone });
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
    afterFailedRound(round) {
      const counts = round.answers().flatMap((answer) => answer.ahead);
      // The most that are ahead at any endpoint of the most favourable quorum, among those that have answered.
      const ahead = counts.sort((a, b) => a - b)[Math.min(quorumOf(round.calls.length), counts.length) - 1];
      const pause = pacer.pause(ahead);
      return pause === undefined ? "pause" : { pause: Math.max(pause, told.after(round)) };
    },
  };
}

/** A ticket of this moment. Only the wall clock decides which of two is the earlier. */
function newTicket(runtime: Runtime): string {
  return String(Math.floor(runtime.now())).padStart(16, "0") + randomToken(runtime);
}

/** One endpoint's answer about the lock and its queue. */
export interface QueueAnswer extends CellAnswer {
  /** Number of live tickets before this one. */
  readonly ahead: number;
}

/** The kind of those that wait, as their channel is named. */
const fairWaiter = "fair";

/** The requests of one ticket. */
export class QueueRequests {
  readonly lock: string;
  readonly #queue: string;
  readonly #tombstones: string;
  readonly #ticket: string;
  /** With wake-ups, the channel. */
  readonly #channel: readonly string[];

  constructor({ prefix, wakeUp }: Settings, name: string, ticket: string) {
    this.lock = keyOf(prefix, "fair", name);
    this.#queue = keyOf(prefix, "queue", name);
    this.#tombstones = keyOf(prefix, "void", name);
    this.#ticket = ticket;
    this.#channel = wakeUp ? [channelOf(prefix, fairWaiter, name)] : [];
  }

  /** Acquires with this value, and else queues the ticket for `expiry` ms. */
  acquire(
    call: Ask,
    value: string,
    { ttl, expiry }: { readonly ttl: number; readonly expiry: number },
  ): Promise<QueueAnswer> {
    const tombstones = [this.#ticket, value];
    return this.#send(call, value, tombstones, [this.#ticket, expiry, ttl, 0]);
  }

  /** Releases what has this value, and refuses it for `retention` ms; the ticket returns to the queue for `expiry` ms. */
  rollBack(
    call: Ask,
    value: string,
    { expiry, retention }: { readonly expiry: number; readonly retention: number },
  ): Promise<QueueAnswer> {
    return this.#send(call, value, [this.#ticket, value], [this.#ticket, expiry, 0, retention]);
  }

  /** Removes the ticket on one endpoint, for good, and releases what has this value. */
  remove(call: Ask, value: string): Promise<QueueAnswer> {
    const args = [this.#ticket, tombstoneRetention, 0, 0, ...this.#channel];
    return this.#send(call, value, [this.#ticket], args);
  }

  /** Releases the lock on one endpoint, and tells the first of the queue. The tombstone is kept for `retention` ms. */
  releaseAndTell(call: Ask, value: string, retention: number): Promise<QueueAnswer> {
    const tombstones = retention > 0 ? [value] : [];
    return this.#send(call, value, tombstones, ["", retention, 0, 0, ...this.#channel]);
  }

  /** Of a ticket, or of a value. */
  tombstoneOf(text: string): string {
    return `${this.#tombstones}:${parseHolder(text).nonce}`;
  }

  /** @param args of the script, behind the value */
  async #send(
    call: Ask,
    value: string,
    tombstones: readonly string[],
    args: readonly (string | number)[],
  ): Promise<QueueAnswer> {
    const keys = [this.lock, this.#queue, ...tombstones.map((text) => this.tombstoneOf(text))];
    const [echo, ahead] = itemsOf(await runScript(call, queueScript, keys, [value, ...args]));
    if (!isInteger(ahead) || ahead < 0) throw unexpectedReply();
    if (echo !== 0 && (echo !== value || ahead > 0)) throw unexpectedReply();
    if (echo === value) return { outcome: "granted", ahead };
    const acquires = Number(args[2]) > 0;
    return { outcome: acquires ? "held" : "lost", ahead };
  }
}
