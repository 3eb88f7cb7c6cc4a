import type { LockStrategy } from "../../bridge/strategy.ts";
import type { Ask } from "../../endpoints/ask.ts";
import { LockHeldError } from "../../errors.ts";
import { timeUntilFree } from "../../lock/contention.ts";
import { isVeto } from "../../quorum/tally.ts";
import { type CellAnswer, readCounter } from "../../redis/cell.ts";
import { keyOf } from "../../redis/keys.ts";
import { runScript, unexpectedReply } from "../../redis/script.ts";
import { type Runtime, stopwatch } from "../../runtime.ts";
import { intervalScript } from "./interval.lua.ts";
import { isInteger, itemsOf } from "./reply.ts";

// The interval of `once`: first a short claim, then, when the claim's process is about to run, a run that stands for the
// whole interval. The stored value says which of the two it is, so that a refused call knows what to wait for.

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
  /**
   * Announces that the next `extend` is another confirmation, which prolongs what earlier ones began.
   *
   * @param every the interval in ms: it goes on after the deadline, which only the run's validity ends with
   */
  confirm(every: number): void;
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
  let interval = 0;

  function run(call: Ask, value: string, args: IntervalArguments): Promise<IntervalAnswer> {
    const [operation, ms] = args;
    const isGuarded = operation === "acquire" || (operation === "release" && ms > 0);
    const names = isGuarded ? [...keys, `${keyOf(prefix, "void", name)}:${value}`] : keys;
    return operate(call, names, value, args);
  }

  return {
    acquire: (call, { value }, ttl) => run(call, value, ["acquire", ttl, Math.floor(waited())]),
    granted(round) {
      const drawn = round.answers().map((answer) => answer.fence ?? 0);
      fence = Math.max(Math.floor(runtime.now()), ...drawn.map((last) => last + 1));
      return undefined;
    },
    extend: (call, { value }) => run(call, value, ["extend", interval, confirmations, fence, retention]),
    release: (call, { value }, ms) => run(call, value, ["release", ms]),
    fence: () => fence,
    confirm(every) {
      interval = every;
      confirmations += 1;
    },
    afterFailedRound({ calls }) {
      const runs = calls.filter(({ answer }) => answer?.outcome === "held" && answer.hasRun).length;
      if (!isVeto(runs, calls.length)) return "pause";
      return new LockHeldError([name], waited(), { retryAfter: timeUntilFree(calls) ?? 1 });
    },
  };
}

type IntervalArguments = readonly [
  operation: "acquire" | "extend" | "release",
  ms: number,
  ...rest: number[],
];

async function operate(
  call: Ask,
  names: readonly string[],
  value: string,
  args: IntervalArguments,
): Promise<IntervalAnswer> {
  const [operation] = args;
  const [echo, other, kind] = itemsOf(await runScript(call, intervalScript, names, [value, ...args]));
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
