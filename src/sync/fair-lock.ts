import type { Ask } from "../endpoints/ask.ts";
import type { LockClient } from "../lock/client.ts";
import { holderText } from "../lock/note.ts";
import type { Settings } from "../lock/options.ts";
import { tombstoneOf, withoutTombstone } from "../lock/protocol.ts";
import { runRound } from "../quorum/round.ts";
import { quorumOf } from "../quorum/tally.ts";
import { type Cell, type CellAnswer, end, keep, tombstoneRetention } from "../redis/cell.ts";
import { keyOf } from "../redis/keys.ts";
import { runScript, unexpectedReply } from "../redis/script.ts";
import { maxTimerDelay, type Runtime, randomToken } from "../runtime/runtime.ts";
import { channelOf } from "../wake-up/channel.ts";
import {
  type Hold,
  type HoldProtocol,
  Holds,
  type NotedOptions,
  notedSchema,
  type SyncOptions,
} from "./internal/hold.ts";
import { queueScript } from "./internal/queue.lua.ts";
import { queuePacer, toldPause } from "./internal/queue-pacer.ts";
import { isInteger, itemsOf } from "./internal/reply.ts";

/**
 * A lock that is granted in the order of waiting. It is as exclusive as a plain lock, separate from the plain lock of
 * this name, and has no fence. A dead waiter is skipped after its last pause and two `timeout`s. The waiters' wall
 * clocks decide who came first, so if your clock is ahead, you wait longer.
 *
 * @example
 * const till = new FairLock(redlock, "till", { ttl: 30_000 });
 * await using hold = await till.acquire({ wait: 60_000, autoExtend: true });
 * await serve(customer, { signal: hold.signal });
 */
export class FairLock {
  readonly name: string;
  readonly #holds: Holds;

  /**
   * @param options defaults of every acquire. The bounds of `backoff` apply to the first in the queue. The others pause
   * longer
   */
  constructor(redlock: LockClient, name: string, options: SyncOptions = {}) {
    this.#holds = new Holds(redlock, name, options, {
      what: "a fair lock",
      call: "new FairLock(redlock, name)",
      ofCall: notedSchema,
    });
    this.name = name;
  }

  /**
   * Acquires the lock, waiting in the queue while others hold it or came earlier.
   *
   * @throws LockHeldError when it was not granted within `wait`
   * @throws QuorumError when too few endpoints answered usably in the last round
   * @throws the signal's reason. Acquired locks are rolled back
   */
  acquire(options: NotedOptions = {}): Promise<Hold> {
    return this.#holds.acquire(options, (settings) => queued(settings, this.name, options.note));
  }

  /**
   * Acquires the lock if nobody holds it and nobody waits for it.
   *
   * @returns null when somebody does, or contenders that came at once got a part each
   * @throws QuorumError as {@link FairLock.acquire} does
   */
  tryAcquire(options: NotedOptions = {}): Promise<Hold | null> {
    return this.#holds.unlessHeld(options, (given) => this.acquire(given));
  }
}

interface QueueAnswer extends CellAnswer {
  /** Number of live tickets before this one. */
  readonly ahead: number;
}

const fairWaiter = "fair";

/**
 * The queue only decides who may try for the lock. A call's ticket has one position everywhere, so all endpoints grant
 * the free lock to the same waiter.
 */
export function queued(settings: Settings, name: string, note?: string): HoldProtocol<QueueAnswer> {
  const { prefix, runtime, backoff, wait, timeout, wakeUp } = settings;
  const ticket = newTicket(runtime);
  const { lock, acquire, rollBack, leave } = requestsOf(settings, name, ticket);
  const pacer = queuePacer(runtime, backoff);
  const told = toldPause(settings);
  let last: Cell | undefined;
  let held: Cell | undefined;

  /**
   * In ms: the round may take a timeout, then there is a pause, and the next request may take another timeout. A call
   * that does not wait never joins the queue.
   */
  function expiry(): number {
    const pause = Math.max(pacer.longest(), 1.5 * told.longest);
    return wait > 0 ? Math.min(maxTimerDelay, Math.ceil(pause + 2 * timeout)) : 0;
  }

  return {
    cell(nonce) {
      last = {
        keys: [lock],
        value: holderText({ nonce, note }),
        tombstone: tombstoneOf(prefix, [name], nonce),
      };
      return last;
    },
    claim: (call, cell, ttl) => acquire(call, cell, { ttl, expiry: expiry() }),
    extend: (call, cell, ttl) => keep(call, withoutTombstone(cell), ttl),
    release(call, cell, claim, isAnnounced) {
      if (cell !== held) {
        if (claim.hasDoneNothing) return Promise.resolve({ outcome: "lost" });
        // Those behind it must not be granted the lock, because two that each had a part would take turns.
        if (wait > 0) return rollBack(call, cell, expiry());
      }
      // The ticket may be in the queue.
      if (!claim.isOver || claim.hasDoneNothing) return leave(call, cell.value, { forGood: true });
      if (wakeUp && isAnnounced) return leave(call, cell.value, { forGood: false });
      return end(call, withoutTombstone(cell));
    },
    isRestorable: false,
    fence: undefined,
    next(round) {
      const counts = round.answers().map(({ ahead }) => ahead);
      // At the worst endpoint of the best quorum.
      const ahead = counts.sort((a, b) => a - b)[Math.min(quorumOf(round.calls.length), counts.length) - 1];
      return { pause: Math.max(pacer.pause(ahead), told.after(round)) };
    },
    waiter: { kind: fairWaiter, name: ticket },
    acquired() {
      held = last;
    },
    cleanUp() {
      // It was never queued.
      if (!last || wait === 0) return undefined;
      const quietly = { ...settings, onFailure: undefined };
      return runRound(quietly, (call) => leave(call, ticket, { forGood: true })).done;
    },
  };
}

function requestsOf({ prefix, wakeUp }: Settings, name: string, ticket: string) {
  const [lock, queue] = [keyOf(prefix, "fair", name), keyOf(prefix, "queue", name)];
  const ownTombstone = tombstoneOf(prefix, [name], ticket);
  const channel = wakeUp ? [channelOf(prefix, fairWaiter, name)] : [];
  const guarded = ({ value, tombstone }: Cell) => ({ value, tombstones: [tombstone!, ownTombstone] });

  async function send(
    call: Ask,
    operation: "acquire" | "rollBack" | "leave",
    { value, tombstones }: { readonly value: string; readonly tombstones: readonly string[] },
    args: readonly (string | number)[],
  ): Promise<QueueAnswer> {
    const keys = [lock, queue, ...tombstones];
    const reply = await runScript(call, queueScript, keys, [operation, value, ticket, ...args]);
    const [echo, ahead] = itemsOf(reply);
    if (!isInteger(ahead) || ahead < 0) throw unexpectedReply();
    if (echo !== 0 && (echo !== value || ahead > 0)) throw unexpectedReply();
    const refused = operation === "acquire" ? "held" : "lost";
    return { outcome: echo === value ? "granted" : refused, ahead };
  }

  return {
    lock,
    acquire: (call: Ask, cell: Cell, { ttl, expiry }: { readonly ttl: number; readonly expiry: number }) =>
      send(call, "acquire", guarded(cell), [ttl, expiry]),
    rollBack: (call: Ask, cell: Cell, expiry: number) =>
      send(call, "rollBack", guarded(cell), [tombstoneRetention, expiry]),
    /** `forGood`: late requests of the ticket are refused. */
    leave: (call: Ask, value: string, { forGood }: { readonly forGood: boolean }) =>
      send(call, "leave", { value, tombstones: forGood ? [ownTombstone] : [] }, [
        tombstoneRetention,
        0,
        ...channel,
      ]),
  };
}

/** The wall clock decides which of two is the earlier. */
function newTicket(runtime: Runtime): string {
  return String(Math.floor(runtime.now())).padStart(16, "0") + randomToken(runtime);
}
