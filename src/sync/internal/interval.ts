import type { EndpointRequest } from "../../endpoints/endpoint-request.ts";
import { LockHeldError } from "../../errors.ts";
import type { LockStrategy } from "../../lock/acquire.ts";
import { quorumOf } from "../../quorum/tally.ts";
import { type CellAnswer, readCounter } from "../../redis/cell.ts";
import { keyOf } from "../../redis/keys.ts";
import { runScript, type Script, unexpectedReply } from "../../redis/script.ts";
import { type Runtime, stopwatch } from "../../runtime.ts";
import { isInteger, itemsOf } from "./reply.ts";

// The interval of `once`: first a short claim, then, when the claim's process is about to run, a run that stands for the
// whole interval. The stored value says which of the two it is, so that a refused call knows what to wait for.

/**
 * Claims, confirms or releases an interval on one endpoint.
 *
 * KEYS: 1. the holder: `value` is a claim, `r<n>:value` a run that was confirmed n times; 2. the ends of the last run's
 * interval and of the one before it, `ms:ms` since 1970 on this endpoint's clock; 3. the largest fence; 4. the round's
 * tombstone, if there is one.
 *
 * ARGV: 1. the value; 2. what to do:
 *    `acquire` a claim, unless there is a holder, or a run began since `every` before the call (3. ttl; 4. ms since the
 *    call);
 *    `extend`: confirm the claim, which makes it a run (3. `every`; 4. number of the confirmation, 1, 2 …; 5. its fence;
 *    6. how long the keys 2 and 3 outlive the interval, in ms);
 *    `release` what has the value, and leave the tombstone for ARGV[3] ms.
 *
 * Replies: {value, the largest fence}: done. {0, ms, "c"}: refused for a claim, or a tombstone. {0, ms, "r"}: refused for
 * a run that has the interval, or had it when the call was made. `ms`: until it ends. {0} to `extend` and `release`: it
 * does not have the value.
 *
 * As for locks, a fence from a client whose clock is ahead is remembered until its time has passed.
 *
 * A second execution of a confirmation changes nothing, so no late request prolongs the interval. A run that is released
 * has not begun: the interval before it is the last one again.
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

/** How long an endpoint remembers the end of an interval and its fence after that end, in ms: 24 hours. */
const retention = 86_400_000;

/** One endpoint's answer about the interval. */
interface IntervalAnswer extends CellAnswer {
  /** Whether a run has it, or had it when the call was made. */
  readonly hasRun?: boolean;
}

/** A strategy for the interval of one name. */
export interface IntervalStrategy extends LockStrategy<IntervalAnswer> {
  /** Larger than the fence of every earlier run. Known once the claim is granted. */
  fence(): number;
  /** Announces that the next `extend` is another confirmation, which prolongs what earlier ones began. */
  confirm(): void;
}

/**
 * Acquires a claim, which its holder extends to make it a run. Waits while others have claims. Ends as soon as there is a
 * run: that is the run of this call, too, so a call never waits for the interval after it.
 */
export function intervalStrategy(runtime: Runtime, prefix: string, name: string): IntervalStrategy {
  const keys = ["once", "once-end", "once-fence"].map((kind) => keyOf(prefix, kind, name));
  const waited = stopwatch(runtime);
  let fence = 0;
  let confirmations = 0;

  function run(call: EndpointRequest, value: string, args: IntervalArguments): Promise<IntervalAnswer> {
    const [operation, ms] = args;
    // Stryker disable next-line ConditionalExpression: a confirmation does not read the tombstone
    const isGuarded = operation === "acquire" || (operation === "release" && ms > 0);
    const names = isGuarded ? [...keys, `${keyOf(prefix, "void", name)}:${value}`] : keys;
    return operate(call, names, value, args);
  }

  return {
    // Stryker disable next-line ArrowFunction,MethodExpression: the operations here name their keys themselves
    keys: () => keys.slice(0, 1),
    acquire: (call, { value }, ttl) => run(call, value, ["acquire", ttl, Math.floor(waited())]),
    grantedKeys({ answers }) {
      const drawn = answers.map((answer) => (answer && "fence" in answer && answer.fence) || 0);
      fence = Math.max(Math.floor(runtime.now()), ...drawn.map((last) => last + 1));
      // Stryker disable next-line MethodExpression: the operations here name their keys themselves
      return keys.slice(0, 1);
    },
    extend: (call, { value }, every) => run(call, value, ["extend", every, confirmations, fence, retention]),
    release: (call, { value }, ms) => run(call, value, ["release", ms]),
    fence: () => fence,
    confirm() {
      confirmations += 1;
    },
    afterFailedRound({ answers }, { held, retryAfter, waited: ms }) {
      const runs = answers.filter((answer) => answer && "hasRun" in answer && answer.hasRun).length;
      const isOver = held && runs > answers.length - quorumOf(answers.length);
      return isOver ? { type: "fail", error: new LockHeldError([name], ms, retryAfter ?? 1) } : undefined;
    },
  };
}

type IntervalArguments = readonly [
  operation: "acquire" | "extend" | "release",
  ms: number,
  ...rest: number[],
];

async function operate(
  call: EndpointRequest,
  names: readonly string[],
  value: string,
  args: IntervalArguments,
): Promise<IntervalAnswer> {
  const [operation] = args;
  const reply = await runScript(call, intervalScript, names, [value, ...args]);
  const [echo, other, kind] = itemsOf(reply);
  // What Upstash bills beside the script itself; at most, because a second execution does less.
  const done = { acquire: 3, extend: 5, release: names.length };
  const refused = { acquire: kind === "r" ? 2 : 3, extend: 2, release: names.length - 2 };
  call.cost.commands += (echo === 0 ? refused : done)[operation];
  if (echo === value) {
    const drawn = Number(other) === 0 ? 0 : readCounter(other);
    if (operation === "release" || drawn !== undefined) return { outcome: "granted", fence: drawn };
  }
  if (echo === 0 && operation !== "acquire" && other === undefined) return { outcome: "lost" };
  if (echo === 0 && isInteger(other) && other >= 0 && (kind === "c" || kind === "r")) {
    return { outcome: "held", retryAfter: other, hasRun: kind === "r" };
  }
  throw unexpectedReply();
}
