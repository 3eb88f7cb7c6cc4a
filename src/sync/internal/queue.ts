import type { Call } from "../../endpoints/call.ts";
import { tombstoneRetention } from "../../lock/lock-request.ts";
import type { Settings } from "../../lock/options.ts";
import { type Round, runRound } from "../../quorum/round.ts";
import { quorumOf } from "../../quorum/tally.ts";
import { keyOf } from "../../redis/keys.ts";
import { type RegisterAnswer, release } from "../../redis/register.ts";
import { runScript, type Script, unexpectedReply } from "../../redis/script.ts";
import { type Runtime, randomToken } from "../../runtime.ts";
import type { HoldStrategy } from "./hold.ts";
import { queuePacer } from "./queue-pacer.ts";
import { isInteger, itemsOf } from "./reply.ts";

// A plain lock with a queue of tickets at every endpoint. The lock alone decides who holds it; the queue only decides who
// may try. A ticket has the same position at every endpoint, so all of them grant the free lock to the same one.

/**
 * Acquires a lock in the order of its queue on one endpoint, rolls that back, or removes a ticket from the queue.
 *
 * KEYS: the lock; the queue; the ticket's tombstone; the round's tombstone, unless the ticket is removed.
 *
 * ARGV: 1. the value; 2. the ticket, of letters and digits; the lesser text is the earlier ticket; 3. ms until the ticket
 * expires unless it is used again; 0: it is not added to the queue; 4. the lock's ttl in ms; 0: the lock is released if
 * it has the value. Then, with a round's tombstone, this is kept for 5. so many ms, and the ticket of the lock that was
 * released returns to the queue; without, the ticket is removed, and its tombstone is kept for ARGV[3] ms.
 *
 * The queue is one text, `ticket:expiry,ticket:expiry`, in no order, with expiries on the endpoint's own clock: so it is
 * read and written with one command each, however long it is. A ticket is not in it while it holds the lock.
 *
 * Replies: {value, 0, commands called}: the lock has the value, or, for a ticket that was removed, had it. {0, live
 * tickets before this one, commands called}: it has not.
 *
 * A second execution does no more than the first: the lock's ttl stays, a ticket's expiry is only ever extended, and a
 * ticket returns only in exchange for the lock.
 */
export const queueScript: Script = {
  source: `local value, ticket, expiry, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local found = redis.call("MGET", unpack(KEYS))
local holder, queue = found[1], found[2] or ""
if ttl > 0 then
  if holder == value then return {value, 0, 1} end
  if found[3] or found[4] then return {0, 0, 1} end
  if not holder and queue == "" then
    redis.call("SET", KEYS[1], value, "PX", ttl)
    return {value, 0, 2}
  end
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
local live, ahead, latest, own, calls = {}, 0, 0, now + expiry, 2
for other, expiries in string.gmatch(queue, "(%w+):(%d+)") do
  if other == ticket then
    own = math.max(own, tonumber(expiries))
  elseif tonumber(expiries) > now then
    live[#live + 1] = other .. ":" .. expiries
    latest = math.max(latest, tonumber(expiries))
    if other < ticket then ahead = ahead + 1 end
  end
end
local acquires = ttl > 0 and not holder and ahead == 0
if rollsBack or ttl > 0 and expiry > 0 and not acquires then
  live[#live + 1] = ticket .. ":" .. string.format("%.0f", own)
  latest = math.max(latest, own)
end
local remaining = table.concat(live, ",")
if remaining ~= queue then
  calls = 3
  if remaining == "" then
    redis.call("DEL", KEYS[2])
  else
    redis.call("SET", KEYS[2], remaining, "PX", string.format("%.0f", latest - now))
  end
end
if acquires then
  redis.call("SET", KEYS[1], value, "PX", ttl)
  return {value, 0, calls + 1}
end
if rollsBack then return {value, 0, calls + 2} end
if ttl > 0 then return {0, ahead, calls} end
redis.call("SET", KEYS[3], 1, "PX", expiry)
if holder ~= value then return {0, ahead, calls + 1} end
redis.call("DEL", KEYS[1])
return {value, 0, calls + 2}`,
  sha: {
    redis: "82049624f7457696cc23a5643e5caab813c868cf",
    upstash: "ea80689e6327be13091ec98e9c37f89030ad3679",
  },
};

/** One endpoint's answer about the lock and its queue. */
interface QueueAnswer extends RegisterAnswer {
  /** Number of live tickets before this one. */
  readonly ahead: number;
}

/**
 * A strategy for a lock that is granted in the order of tickets. Each acquire has one ticket, which is added to the queue
 * of every endpoint that refuses it. The pauses depend on how many tickets are ahead, and on how fast they were served.
 */
export function queueStrategy(settings: Settings, name: string): HoldStrategy {
  const { runtime, prefix, endpoints, backoff, wait, timeout } = settings;
  const ticket = newTicket(runtime);
  const lock = keyOf(prefix, "fair", name);
  const queue = keyOf(prefix, "queue", name);
  const tombstoneOf = (text: string) => `${keyOf(prefix, "void", name)}:${text}`;
  const pacer = queuePacer(runtime, backoff);
  let value = "";
  let grantingRound: Round<RegisterAnswer> | undefined;
  let isAcquired = false;

  /** With `wait: 0` we never join the queue. Otherwise the ticket must outlive one pause plus one request. */
  const expiry = () => (wait > 0 ? Math.ceil(pacer.longest() + timeout) : 0);

  /** Acquires with this value; with ttl 0 rolls that back, and for `retention` ms refuses it. */
  function run(call: Call, value: string, ttl: number, retention = 0): Promise<QueueAnswer> {
    const keys = [lock, queue, tombstoneOf(ticket), tombstoneOf(value)];
    return operate(call, keys, [value, ticket, expiry(), ttl, retention]);
  }

  /** Removes the ticket on one endpoint, for good, and releases what has this value. */
  function remove(call: Call, value: string): Promise<QueueAnswer> {
    return operate(call, [lock, queue, tombstoneOf(ticket)], [value, ticket, tombstoneRetention, 0, 0]);
  }

  return {
    keys: () => [lock],
    acquire(call, register, ttl) {
      value = register.value;
      return run(call, value, ttl);
    },
    grantedKeys(round) {
      grantingRound = round;
      return [lock];
    },
    release(call, register, retention) {
      const outcome = grantingRound?.answers[endpoints.indexOf(call.endpoint)]?.outcome;
      // Where the lock was not free yet, or nothing is known, the holder's ticket may be in the queue.
      if (isAcquired && register.value === value && outcome !== "granted") {
        return remove(call, value);
      }
      // Those behind it must not be granted what it has to ask for again: two that each had a part would take turns.
      if (!isAcquired && wait > 0) return run(call, register.value, 0, retention);
      const tombstone = retention > 0 ? tombstoneOf(register.value) : undefined;
      return release(call, { ...register, tombstone }, retention);
    },
    acquired() {
      isAcquired = true;
    },
    // Those behind it need not wait until its ticket expires.
    cleanUp() {
      // Without a request it was never queued.
      if (!value || wait === 0) return undefined;
      return runRound({ ...settings, onFailure: undefined }, (call) => remove(call, ticket)).done;
    },
    afterFailedRound({ answers }) {
      const counts = answers.flatMap((answer) =>
        answer && answer.outcome !== "error" ? (answer as QueueAnswer).ahead : [],
      );
      // The most that are ahead at any endpoint of the most favourable quorum, among those that have answered.
      return pacer.pause(counts.sort((a, b) => a - b)[Math.min(quorumOf(answers.length), counts.length) - 1]);
    },
  };
}

/** A ticket of this moment. Only the wall clock decides which of two is the earlier. */
function newTicket(runtime: Runtime): string {
  return String(Math.floor(runtime.now())).padStart(16, "0") + randomToken(runtime);
}

/** Runs the script. */
async function operate(
  call: Call,
  keys: readonly string[],
  args: readonly [value: string, ticket: string, expiry: number, ttl: number, retention: number],
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
