import type { Call } from "../../endpoints/call.ts";
import { LockHeldError } from "../../errors.ts";
import type { LockStrategy } from "../../lock/acquire.ts";
import { quorumOf } from "../../quorum/tally.ts";
import { keyOf } from "../../redis/keys.ts";
import { type RegisterAnswer, readCounter } from "../../redis/register.ts";
import { runScript, type Script, unexpectedReply } from "../../redis/script.ts";
import { type Runtime, stopwatch } from "../../runtime.ts";

// The interval of `once`: first a short claim, then, when its process is about to run, a run that lasts for the whole
// interval. What stands there says which of the two it is, so that those who are refused know what to wait for.

/**
 * What one endpoint does with an interval.
 *
 * KEYS: 1. who has it: `value` is a claim, `r<n>:value` a run that was confirmed n times; 2. when the last run's
 * interval ends and the one before it ended, `ms:ms` since 1970 by this endpoint's clock; 3. the largest fence; 4. the
 * round's tombstone, if there is one.
 *
 * ARGV: 1. the value; 2. what to do:
 *    `acquire` a claim, unless somebody has it, or a run began since `every` before the call (3. ttl; 4. ms since the
 *    caller made the call);
 *    `extend`, which makes the claim a run (3. `every`; 4. which confirmation of the claim it is, 1, 2 …; 5. its fence;
 *    6. for how long the keys 2 and 3 outlive the interval, in ms);
 *    `release` whatever is the value's, and leave the tombstone for ARGV[3] ms.
 *
 * Replies: {value, the largest fence} when it did so; {0, ms, "c"}: there is a claim, or a tombstone; {0, ms, "r"}: a
 * run has the interval, or had it when the call was made; ms tells for how long; {0} to a renewal and to a drop: it is
 * not the value's.
 *
 * As for locks, the fence of a client whose clock is ahead is remembered until it is the past.
 *
 * A confirmation that is executed again changes nothing, so that no late request prolongs the interval. A run that is
 * dropped has not begun: the interval before it is the last one again.
 */
export const intervalScript: Script = {
  source: `local value, op, ttl, number = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local found = redis.call("MGET", unpack(KEYS))
local holder = found[1] or ""
local own, run = string.sub(holder, -#value) == value, string.match(holder, "^r(%d+):")
local ends, before = string.match(found[2] or "0:0", "(%d+):(%d+)")
if op == "release" then
  if own then redis.call("DEL", KEYS[1]) end
  if own and run and found[2] then redis.call("SET", KEYS[2], before .. ":" .. before, "KEEPTTL") end
  if KEYS[4] then redis.call("SET", KEYS[4], 1, "PX", ttl) end
  return {own and value or 0}
end
local time = redis.call("TIME")
local now = time[1] * 1e3 + math.floor(time[2] / 1e3)
if op == "extend" then
  if not own then return {0} end
  if number > tonumber(run or 0) then
    local kept = ttl + ARGV[6]
    ends = string.format("%.0f:", now + ttl) .. (run and before or ends)
    redis.call("SET", KEYS[1], "r" .. number .. ":" .. value, "PX", ttl)
    redis.call("SET", KEYS[2], ends, "PX", kept)
    local fence = math.max(tonumber(found[3] or 0), tonumber(ARGV[5]))
    kept = string.format("%.0f", kept + math.max(0, fence - now))
    redis.call("SET", KEYS[3], string.format("%.0f", fence), "PX", kept)
  end
elseif not own then
  if holder ~= "" and not run or found[4] then
    return {0, math.max(0, redis.call("PTTL", KEYS[1])), "c"}
  end
  if run or ends + number > now then return {0, math.max(0, ends - now), "r"} end
  redis.call("SET", KEYS[1], value, "PX", ttl)
end
return {value, found[3] or 0}`,
  sha: {
    redis: "0c6f47696474f3df306d54d2a29ef4b313eb6c78",
    upstash: "002243430bda02db06cf2104a9bfb0ff3f27bc3b",
  },
};

/** How long an endpoint remembers, beyond its interval, when a run began and its fence, in ms: 24 hours. */
const retention = 86_400_000;

/** One endpoint's answer about the interval. */
interface IntervalAnswer extends RegisterAnswer {
  /** A run has it, or had it when the call was made. */
  readonly hasRun?: boolean;
}

/** A strategy for the interval of one name. */
export interface IntervalStrategy extends LockStrategy {
  /** Larger than that of every earlier run; known when the claim was granted. */
  fence(): number;
  /** Another confirmation follows: it renews what the earlier ones began. */
  confirm(): void;
}

/**
 * Takes a claim, which its holder renews to make it a run. Waits while others have claims; ends as soon as there is a
 * run, which is then the run of this call, too: a call never waits for the interval after that.
 */
export function intervalStrategy(runtime: Runtime, prefix: string, name: string): IntervalStrategy {
  const keys = ["once", "once-end", "once-fence"].map((kind) => keyOf(prefix, kind, name));
  const waited = stopwatch(runtime);
  let fence = 0;
  let confirmations = 0;

  async function operate(
    call: Call,
    value: string,
    args: readonly [operation: "acquire" | "extend" | "release", ms: number, ...rest: number[]],
  ): Promise<IntervalAnswer> {
    const [operation, ms] = args;
    const tombstone = operation === "acquire" || (operation === "release" && ms > 0);
    const names = tombstone ? [...keys, `${keyOf(prefix, "void", name)}:${value}`] : keys;
    const reply = await runScript(call, intervalScript, names, [value, ...args]);
    const [echo, other, kind] = Array.isArray(reply) ? reply : [];
    // What Upstash bills beside the script itself; at most, where it is done again.
    const done = { acquire: 3, extend: 5, release: names.length };
    const refused = { acquire: kind === "r" ? 2 : 3, extend: 2, release: names.length - 2 };
    call.cost.commands += (echo === 0 ? refused : done)[operation];
    if (echo === value) {
      const drawn = Number(other) === 0 ? 0 : readCounter(other);
      if (operation === "release" || drawn !== undefined) return { outcome: "granted", fence: drawn };
    }
    if (echo === 0 && operation !== "acquire" && other === undefined) return { outcome: "lost" };
    if (echo === 0 && Number.isSafeInteger(other) && other >= 0 && (kind === "c" || kind === "r")) {
      return { outcome: "held", retryAfter: other, hasRun: kind === "r" };
    }
    throw unexpectedReply();
  }

  return {
    keys: () => keys.slice(0, 1),
    acquire: (call, { value }, ttl) => operate(call, value, ["acquire", ttl, Math.floor(waited())]),
    grantedKeys({ answers }) {
      const drawn = answers.map((answer) => (answer as IntervalAnswer | undefined)?.fence ?? 0);
      fence = Math.max(Math.floor(runtime.now()), ...drawn.map((last) => last + 1));
      return keys.slice(0, 1);
    },
    extend: (call, { value }, every) =>
      operate(call, value, ["extend", every, confirmations, fence, retention]),
    release: (call, { value }, ms) => operate(call, value, ["release", ms]),
    fence: () => fence,
    confirm() {
      confirmations += 1;
    },
    afterFailedRound({ answers }, { held, retryAfter, waited: ms }) {
      const runs = answers.filter((answer) => (answer as IntervalAnswer | undefined)?.hasRun).length;
      const isOver = held && runs > answers.length - quorumOf(answers.length);
      return isOver ? new LockHeldError([name], ms, retryAfter ?? 1) : "wait";
    },
  };
}
