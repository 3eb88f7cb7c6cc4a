import type { EndpointRequest } from "../../endpoints/endpoint-request.ts";
import { tombstoneRetention } from "../../lock/lock-request.ts";
import type { Settings } from "../../lock/options.ts";
import { channelOf } from "../../lock/wake-up/channel.ts";
import type { Cell, CellAnswer } from "../../redis/cell.ts";
import { keyOf } from "../../redis/keys.ts";
import { runScript, unexpectedReply } from "../../redis/script.ts";
import { queueScript } from "./queue.lua.ts";
import { isInteger, itemsOf } from "./reply.ts";

// The requests of one ticket to one endpoint.

/** One endpoint's answer about the lock and its queue. */
export interface QueueAnswer extends CellAnswer {
  /** Number of live tickets before this one. */
  readonly ahead: number;
}

/** The kind of those that wait, as their channel is named. */
export const fairWaiter = "fair";

/** In how many ms a living waiter answers a call, at least. A client's timeout may be short. */
const leastGrace = 1_000;

/** The requests of one ticket. */
export class QueueRequests {
  readonly lock: string;
  readonly #queue: string;
  readonly #tombstones: string;
  readonly #ticket: string;
  /**
   * With wake-ups: ms in which a living waiter answers a call, and the channel. All that wait are called together: if each
   * dead ticket were waited for in its turn, a few would keep the lock free for long.
   */
  readonly #wakeUp: readonly (string | number)[];

  constructor({ prefix, timeout, wakeUp }: Settings, name: string, ticket: string) {
    this.lock = keyOf(prefix, "fair", name);
    this.#queue = keyOf(prefix, "queue", name);
    this.#tombstones = keyOf(prefix, "void", name);
    this.#ticket = ticket;
    const grace = Math.ceil(Math.max(leastGrace, timeout));
    this.#wakeUp = wakeUp ? [grace, channelOf(prefix, fairWaiter, name)] : [];
  }

  /** Acquires with this value, and else queues the ticket for `expiry` ms. */
  acquire(
    call: EndpointRequest,
    value: string,
    { ttl, expiry }: { readonly ttl: number; readonly expiry: number },
  ): Promise<QueueAnswer> {
    return operate(call, this.#keysOf(value), [value, this.#ticket, expiry, ttl, 0, ...this.#wakeUp]);
  }

  /** Releases what has this value, and refuses it for `retention` ms; the ticket returns to the queue for `expiry` ms. */
  rollBack(
    call: EndpointRequest,
    value: string,
    { expiry, retention }: { readonly expiry: number; readonly retention: number },
  ): Promise<QueueAnswer> {
    return operate(call, this.#keysOf(value), [value, this.#ticket, expiry, 0, retention]);
  }

  /** Removes the ticket on one endpoint, for good, and releases what has this value. */
  remove(call: EndpointRequest, value: string): Promise<QueueAnswer> {
    const keys = [this.lock, this.#queue, this.tombstoneOf(this.#ticket)];
    return operate(call, keys, [value, this.#ticket, tombstoneRetention, 0, 0, ...this.#wakeUp]);
  }

  /** Releases the lock on one endpoint, and tells the first of the queue. */
  releaseAndTell(call: EndpointRequest, { value, tombstone }: Cell, retention: number): Promise<QueueAnswer> {
    const keys = [this.lock, this.#queue, ...(tombstone ? [tombstone] : [])];
    return operate(call, keys, [value, "", retention, 0, 0, ...this.#wakeUp]);
  }

  /** Of a ticket, or of a value. */
  tombstoneOf(text: string): string {
    return `${this.#tombstones}:${text}`;
  }

  #keysOf(value: string): string[] {
    return [this.lock, this.#queue, this.tombstoneOf(this.#ticket), this.tombstoneOf(value)];
  }
}

/** Runs the script. */
async function operate(
  call: EndpointRequest,
  keys: readonly string[],
  args: readonly [
    value: string,
    ticket: string,
    expiry: number,
    ttl: number,
    retention: number,
    ...wakeUp: (string | number)[],
  ],
): Promise<QueueAnswer> {
  const [value, , , ttl] = args;
  const reply = await runScript(call, queueScript, keys, args);
  const [echo, ahead, calls, again = 0] = itemsOf(reply, 4);
  if (!isInteger(ahead) || !isInteger(calls) || !isInteger(again) || ahead < 0) throw unexpectedReply();
  if (echo !== 0 && (echo !== value || ahead > 0)) throw unexpectedReply();
  // What Upstash bills beside the script itself.
  call.cost.commands += calls;
  if (echo === value) return { outcome: "granted", ahead };
  return { outcome: ttl > 0 ? "held" : "lost", ahead, ...(again > 0 && { retryAfter: again }) };
}
