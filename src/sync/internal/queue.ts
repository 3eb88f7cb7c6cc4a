import type { Call } from "../../endpoints/call.ts";
import type { LockStrategy } from "../../lock/acquire.ts";
import { tombstoneRetention } from "../../lock/lock-request.ts";
import type { Settings } from "../../lock/options.ts";
import { type Backoff, pauses } from "../../quorum/backoff.ts";
import type { Round } from "../../quorum/round.ts";
import { type Answer, quorumOf } from "../../quorum/tally.ts";
import { keyOf } from "../../redis/keys.ts";
import { type RegisterAnswer, release } from "../../redis/register.ts";
import { runScript, type Script, unexpectedReply } from "../../redis/script.ts";
import { type Runtime, randomToken, stopwatch } from "../../runtime.ts";

// A lock with a queue at every endpoint. The lock is a plain one, and as exclusive as any; the queue only says who may
// try. Every ticket has the same place at every endpoint, so that all of them give the free lock to the same one.

/**
 * What one endpoint does with a ticket of the queue for a lock.
 *
 * KEYS: the lock; the queue; the ticket's tombstone; the round's tombstone, unless the ticket leaves.
 *
 * ARGV: 1. the value; 2. the ticket, of letters and digits; the lesser text is the earlier ticket; 3. in how many ms
 * the ticket expiries unless it asks again; 0: it is not put into the queue; 4. the lock's ttl in ms; 0: the ticket
 * leaves, its tombstone stands for ARGV[3] ms, and the lock is dropped where it is the value's.
 *
 * The queue is one text, `ticket:expiry,ticket:expiry`, in no order, with expiries by the endpoint's own clock: to read and
 * to write it is one command each, however long it is. A ticket is out of it while it has the lock.
 *
 * Replies: {value, 0, commands called}: the lock is the value's, or, where the ticket left, was. {0, live tickets
 * before this one, commands called}: it is not.
 *
 * Executed twice it does no more than once: the lock's ttl stays, and a ticket's expiry is only ever put off.
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
local takes = ttl > 0 and not holder and ahead == 0
if ttl > 0 and expiry > 0 and not takes then
  live[#live + 1] = ticket .. ":" .. string.format("%.0f", own)
  latest = math.max(latest, own)
end
local left = table.concat(live, ",")
if left ~= queue then
  calls = 3
  if left == "" then
    redis.call("DEL", KEYS[2])
  else
    redis.call("SET", KEYS[2], left, "PX", string.format("%.0f", latest - now))
  end
end
if takes then
  redis.call("SET", KEYS[1], value, "PX", ttl)
  return {value, 0, calls + 1}
end
if ttl > 0 then return {0, ahead, calls} end
redis.call("SET", KEYS[3], 1, "PX", expiry)
if holder ~= value then return {0, ahead, calls + 1} end
redis.call("DEL", KEYS[1])
return {value, 0, calls + 2}`,
  sha: {
    redis: "f3e64327f9eef843d423e988bb180a2a8691539b",
    upstash: "4028400a8f756037e479feed3a660e17e413ef8f",
  },
};

/** One endpoint's answer about the lock and its queue. */
export interface QueueAnswer extends RegisterAnswer {
  /** How many live tickets are before this one. */
  readonly ahead: number;
}

/** A strategy for a lock in the order of tickets. */
export interface QueueStrategy extends LockStrategy {
  /** The lock is its holder's now: its release takes along what its late requests put into the queue. */
  keep(): void;
  /** Takes the ticket out of the queue on one endpoint, for good; without a request where it never was in it. */
  leave(call: Call): Promise<Answer>;
}

/**
 * Asks for the lock with a ticket of its own, by which it is put into the queue where the lock is not to be had. How
 * long it pauses depends on how many are before it, and on how fast they were served.
 */
export function queueStrategy(settings: Settings, name: string): QueueStrategy {
  const { runtime, prefix, endpoints, backoff, wait, timeout } = settings;
  const lock = keyOf(prefix, "fair", name);
  const queue = keyOf(prefix, "queue", name);
  const tombstoneOf = (text: string) => `${keyOf(prefix, "void", name)}:${text}`;
  // The wall clock decides who comes first, and nothing else.
  const ticket = String(Math.floor(runtime.now())).padStart(16, "0") + randomToken(runtime);
  const watch = queuePacer(runtime, backoff);
  let value = "";
  let granting: Round<RegisterAnswer> | undefined;
  let isKept = false;

  async function operate(call: Call, text: string, expiry: number, ttl: number): Promise<QueueAnswer> {
    const keys = [lock, queue, tombstoneOf(ticket)];
    if (ttl > 0) keys.push(tombstoneOf(text));
    const reply = await runScript(call, queueScript, keys, [text, ticket, expiry, ttl]);
    const [echo, ahead, calls] = Array.isArray(reply) && reply.length === 3 ? reply : [];
    const isSane = Number.isSafeInteger(ahead) && Number.isSafeInteger(calls) && ahead >= 0;
    if (!isSane || (echo !== 0 && (echo !== text || ahead > 0))) {
      throw unexpectedReply();
    }
    // What Upstash bills beside the script itself.
    call.cost.commands += calls;
    return { outcome: echo === text ? "granted" : ttl > 0 ? "held" : "lost", ahead };
  }

  return {
    keys: () => [lock],
    acquire(call, register, ttl) {
      value = register.value;
      // Who does not wait need not be waited for. A pause is followed by a request, which takes time, too.
      return operate(call, value, wait > 0 ? Math.ceil(watch.longest() + timeout) : 0, ttl);
    },
    grantedKeys(round) {
      granting = round;
      return [lock];
    },
    release(call, register, retention) {
      const outcome = granting?.answers[endpoints.indexOf(call.endpoint)]?.outcome;
      // Where the lock was not free yet, or nothing is known, the holder's ticket may be in the queue.
      if (isKept && register.value === value && outcome !== "granted") {
        return operate(call, value, tombstoneRetention, 0);
      }
      const tombstone = retention > 0 ? tombstoneOf(register.value) : undefined;
      return release(call, { ...register, tombstone }, retention);
    },
    keep() {
      isKept = true;
    },
    async leave(call) {
      return value && wait > 0 ? operate(call, ticket, tombstoneRetention, 0) : { outcome: "lost" };
    },
    afterFailedRound({ answers }) {
      const places = answers.flatMap((answer) =>
        answer && answer.outcome !== "error" ? (answer as QueueAnswer).ahead : [],
      );
      // How many are before it, as the quorum sees it that has the fewest, among those that have answered.
      return watch.pause(places.sort((a, b) => a - b)[Math.min(quorumOf(answers.length), places.length) - 1]);
    },
  };
}

/** Learns how fast a queue goes on, and says when to ask again. */
export interface PollPacer {
  /** ms that the next pause takes at most. The endpoints are told, so that a ticket expiries soon when its owner dies. */
  longest(): number;
  /** ms to pause with so many tickets ahead; `wait` where that is not known: as for a lock. */
  pause(ahead: number | undefined): number | "wait";
}

/**
 * A pause is a share of the time that the queue is expected to need until it is this ticket's turn. So a ticket asks a
 * number of times that grows with the logarithm of the queue's length, and most often when it is the first.
 *
 * @param backoff the first in the queue pauses within its bounds, of the others each as many times longer at most as
 * there are before it; a function is obeyed instead
 */
export function queuePacer(runtime: Runtime, backoff: Backoff): PollPacer {
  if (typeof backoff === "function") {
    const next = pauses(backoff, runtime);
    let chosen = next();
    return {
      longest: () => chosen,
      pause() {
        const pause = chosen;
        chosen = next();
        return pause;
      },
    };
  }
  const { max = Math.max(1_000, backoff.min ?? 0), min = Math.min(25, max) } = backoff;
  // No timer keeps longer delays.
  const bounded = (ms: number) => Math.min(2_147_483_647, ms);
  const clock = stopwatch(runtime);
  let longest = bounded(Math.min(max, 40 * min));
  let first: readonly [at: number, ahead: number] | undefined;
  let last: readonly [at: number, ahead: number] = [0, Infinity];
  return {
    longest: () => longest,
    pause(ahead) {
      if (ahead === undefined) return "wait";
      const at = clock();
      // More than before: somebody's first request was on its way for longer than this one's. So nothing is known yet.
      if (!first || ahead > last[1]) first = last = [at, ahead];
      else if (ahead < last[1]) last = [at, ahead];
      const served = first[1] - ahead;
      // ms that each takes: on average, or at least, where the present one takes longer.
      const each = Math.max(min, at - last[0], served > 0 ? (at - first[0]) / served : 0);
      const wished = Math.max(min, each * (ahead > 0 ? 0.75 * ahead : 0.25));
      const pause = Math.min(longest, max * Math.max(ahead, 1), wished);
      longest = bounded(1.5 * pause);
      return pause;
    },
  };
}
