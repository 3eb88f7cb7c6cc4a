import type { EndpointRequest } from "../../endpoints/endpoint-request.ts";
import { tombstoneRetention } from "../../lock/lock-request.ts";
import type { Settings } from "../../lock/options.ts";
import { channelOf } from "../../lock/wake-up/channel.ts";
import { maxFallbackPoll } from "../../lock/wake-up/wake-up.ts";
import type { Cell, CellAnswer } from "../../redis/cell.ts";
import { keyOf } from "../../redis/keys.ts";
import { runScript, type Script, unexpectedReply } from "../../redis/script.ts";
import { isInteger, itemsOf } from "./reply.ts";

// The requests of one ticket to one endpoint.

/**
 * Acquires a lock in the order of its queue on one endpoint, rolls that back, removes a ticket from the queue, or releases
 * the lock.
 *
 * KEYS: the lock; the queue; the ticket's tombstone, for a release the value's, if it leaves one; the round's tombstone,
 * for a request that acquires or rolls back.
 *
 * ARGV: 1. the value; 2. the ticket, of letters and digits; the lesser text is the earlier ticket; `""`: the lock is only
 * released; 3. ms until the ticket expires unless it is used again; 0: it is not added to the queue; 4. the lock's ttl in
 * ms; 0: the lock is released if it has the value. Then, with a round's tombstone, this is kept for 5. so many ms, and the
 * ticket of the lock that was released returns to the queue; without, the ticket is removed, and its tombstone is kept for
 * ARGV[3] ms. With wake-ups: 6. ms in which a living waiter asks again; 7. the channel on which the first ticket is named
 * when the lock is free, unless its round is rolled back.
 *
 * The queue is one text, `ticket:expiry,ticket:expiry`, in no order, with expiries on the endpoint's own clock: so it is
 * read and written with one command each, however long it is. A ticket is not in it while it holds the lock. With
 * wake-ups, tickets are kept for long. So the first one must take a free lock within ARGV[6] ms of the first request that
 * it keeps out; else its waiter is dead.
 *
 * Replies: {value, 0, commands called}: the lock has the value, or, for a ticket or lock that was removed, had it. {0, live
 * tickets before this one, commands called}: it has not.
 *
 * A second execution does no more than the first: the lock's ttl stays, a ticket's own requests only extend its expiry,
 * and a ticket returns only in exchange for the lock. A second release finds its tombstone, and replies the same.
 */
export const queueScript: Script = {
  source: `local value, ticket, expiry, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local found = redis.call("MGET", unpack(KEYS))
local holder, queue, calls = found[1], found[2] or "", 1
local function tell()
  local first
  for other in string.gmatch(queue, "(%w+):") do
    if not first or other < first then first = other end
  end
  if ARGV[7] and first then
    redis.call("PUBLISH", ARGV[7], "0:" .. first)
    calls = calls + 1
  end
end
if ttl > 0 then
  if holder == value then return {value, 0, 1} end
  if found[3] or found[4] then return {0, 0, 1} end
  if not holder and queue == "" then
    redis.call("SET", KEYS[1], value, "PX", ttl)
    return {value, 0, 2}
  end
end
if ticket == "" then
  if found[3] == "freed" then return {value, 0, 1} end
  if KEYS[3] then
    redis.call("SET", KEYS[3], holder == value and "freed" or 1, "PX", expiry)
    calls = 2
  end
  if holder == value then
    redis.call("DEL", KEYS[1])
    calls, holder = calls + 1, nil
  end
  if not holder then tell() end
  return {found[1] == value and value or 0, 0, calls}
end
local rollsBack = ttl == 0 and KEYS[4]
if rollsBack then
  redis.call("SET", KEYS[4], 1, "PX", ARGV[5])
  if holder ~= value then return {0, 0, 2} end
  redis.call("DEL", KEYS[1])
  if found[3] then return {value, 0, 3} end
end
local time = redis.call("TIME")
local now = time[1] * 1e3 + math.floor(time[2] / 1e3)
local live, ahead, latest, own, first = {}, 0, 0, now + expiry, nil
for other, expiries in string.gmatch(queue, "(%w+):(%d+)") do
  if other == ticket then
    own = math.max(own, tonumber(expiries))
  elseif tonumber(expiries) > now then
    live[#live + 1] = {other, tonumber(expiries)}
    if not first or other < first[1] then first = live[#live] end
    if other < ticket then ahead = ahead + 1 end
  end
end
local acquires = ttl > 0 and not holder and ahead == 0
if ttl > 0 and not holder and ahead > 0 and ARGV[6] then
  first[2] = math.min(first[2], now + ARGV[6])
end
if rollsBack or ttl > 0 and expiry > 0 and not acquires then live[#live + 1] = {ticket, own} end
for i, entry in ipairs(live) do
  latest = math.max(latest, entry[2])
  live[i] = entry[1] .. ":" .. string.format("%.0f", entry[2])
end
local before = queue
queue, calls = table.concat(live, ","), 2
if queue ~= before then
  calls = 3
  if queue == "" then
    redis.call("DEL", KEYS[2])
  else
    redis.call("SET", KEYS[2], queue, "PX", string.format("%.0f", latest - now))
  end
end
if acquires then
  redis.call("SET", KEYS[1], value, "PX", ttl)
  return {value, 0, calls + 1}
end
if rollsBack then return {value, 0, calls + 2} end
if ttl > 0 then return {0, ahead, calls} end
redis.call("SET", KEYS[3], 1, "PX", expiry)
calls = calls + 1
if holder == value then
  redis.call("DEL", KEYS[1])
  calls, holder = calls + 1, nil
end
if not holder then tell() end
if found[1] ~= value then return {0, ahead, calls} end
return {value, 0, calls}`,
  sha: {
    redis: "d7e983e6abfd29c099282d95f441643370f5a702",
    upstash: "292edda30f345dbb50e2d54258c4cb56cc600073",
  },
};

/** One endpoint's answer about the lock and its queue. */
export interface QueueAnswer extends CellAnswer {
  /** Number of live tickets before this one. */
  readonly ahead: number;
}

/** The kind of those that wait, as their channel is named. */
export const fairWaiter = "fair";

/** The requests of one ticket. */
export class QueueRequests {
  readonly lock: string;
  readonly #queue: string;
  readonly #tombstones: string;
  readonly #ticket: string;
  /** With wake-ups: ms in which a living waiter asks again, and the channel. */
  readonly #wakeUp: readonly (string | number)[];

  constructor({ prefix, timeout, wakeUp }: Settings, name: string, ticket: string) {
    this.lock = keyOf(prefix, "fair", name);
    this.#queue = keyOf(prefix, "queue", name);
    this.#tombstones = keyOf(prefix, "void", name);
    this.#ticket = ticket;
    this.#wakeUp = wakeUp ? [Math.ceil(maxFallbackPoll + timeout), channelOf(prefix, fairWaiter, name)] : [];
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
  const [echo, ahead, calls] = itemsOf(reply, 3);
  if (!isInteger(ahead) || !isInteger(calls) || ahead < 0) throw unexpectedReply();
  if (echo !== 0 && (echo !== value || ahead > 0)) throw unexpectedReply();
  // What Upstash bills beside the script itself.
  call.cost.commands += calls;
  if (echo === value) return { outcome: "granted", ahead };
  return { outcome: ttl > 0 ? "held" : "lost", ahead };
}
