import type { Call } from "../../endpoints/call.ts";
import { tombstoneRetention } from "../../lock/lock-request.ts";
import type { Settings } from "../../lock/options.ts";
import { type Round, runRound } from "../../quorum/round.ts";
import { type Answer, quorumOf } from "../../quorum/tally.ts";
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
 * Acquires a lock in the order of its queue on one endpoint, or removes a ticket from the queue.
 *
 * KEYS: the lock; the queue; the ticket's tombstone; the round's tombstone, unless the ticket is removed.
 *
 * ARGV: 1. the value; 2. the ticket, of letters and digits; the lesser text is the earlier ticket; 3. ms until the ticket
 * expires unless it is used again; 0: it is not added to the queue; 4. the lock's ttl in ms; 0: the ticket is removed, its
 * tombstone is kept for ARGV[3] ms, and the lock is released if it has the value.
 *
 * The queue is one text, `ticket:expiry,ticket:expiry`, in no order, with expiries on the endpoint's own clock: so it is
 * read and written with one command each, however long it is. A ticket is not in it while it holds the lock.
 *
 * Replies: {value, 0, commands called}: the lock has the value, or, for a ticket that was removed, had it. {0, live
 * tickets before this one, commands called}: it has not.
 *
 * A second execution does no more than the first: the lock's ttl stays, and a ticket's expiry is only ever extended.
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
if ttl > 0 and expiry > 0 and not acquires then
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
if ttl > 0 then return {0, ahead, calls} end
redis.call("SET", KEYS[3], 1, "PX", expiry)
if holder ~= value then return {0, ahead, calls + 1} end
redis.call("DEL", KEYS[1])
return {value, 0, calls + 2}`,
  sha: {
    redis: "c55b53d140c33f2e5d0ddc535933943f5608f060",
    upstash: "3d250ea9e7b40bca32a74179b215f5a2b919ee2e",
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

  function run(call: Call, value: string, expiry: number, ttl: number): Promise<QueueAnswer> {
    const tombstones = ttl > 0 ? [tombstoneOf(ticket), tombstoneOf(value)] : [tombstoneOf(ticket)];
    return operate(call, [lock, queue, ...tombstones], [value, ticket, expiry, ttl]);
  }

  /** Removes the ticket on one endpoint, for good, and releases what has this value; no request if never queued. */
  async function leave(call: Call): Promise<Answer> {
    if (!value || wait === 0) return { outcome: "lost" };
    return run(call, ticket, tombstoneRetention, 0);
  }

  return {
    keys: () => [lock],
    acquire(call, register, ttl) {
      value = register.value;
      // With `wait: 0` we never join the queue. Otherwise the ticket must outlive one pause plus one request.
      const expiry = wait > 0 ? Math.ceil(pacer.longest() + timeout) : 0;
      return run(call, value, expiry, ttl);
    },
    grantedKeys(round) {
      grantingRound = round;
      return [lock];
    },
    release(call, register, retention) {
      const outcome = grantingRound?.answers[endpoints.indexOf(call.endpoint)]?.outcome;
      // Where the lock was not free yet, or nothing is known, the holder's ticket may be in the queue.
      if (isAcquired && register.value === value && outcome !== "granted") {
        return run(call, value, tombstoneRetention, 0);
      }
      const tombstone = retention > 0 ? tombstoneOf(register.value) : undefined;
      return release(call, { ...register, tombstone }, retention);
    },
    acquired() {
      isAcquired = true;
    },
    // Those behind it need not wait until its ticket expires.
    cleanUp: () => runRound({ ...settings, onFailure: undefined }, leave).done,
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

/** Runs the script. A ttl of 0 removes the ticket. */
async function operate(
  call: Call,
  keys: readonly string[],
  args: readonly [value: string, ticket: string, expiry: number, ttl: number],
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
