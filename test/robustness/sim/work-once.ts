import { LockLostError, QuorumError } from "../../../src/index.ts";
import { quorumOf } from "../../../src/quorum/tally.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { stopwatch } from "../../../src/runtime.ts";
import { type OnceContext, type OnceOutcome, once } from "../../../src/sync/index.ts";
import { type Actor, drawOptions, type Stage } from "./actor.ts";
import type { Draw } from "./draw.ts";
import { checkFences } from "./fences.ts";
import { judgeRefusal } from "./handles.ts";
import { Holds, newHold } from "./holds.ts";
import type { Workload } from "./synchronizers.ts";

const name = "nightly";

// By how much less than its ttl a key may stand in true time: the fastest clock, and what Redis rounds off.
const fastest = 0.995;
const rounding = 2;

// What endpoints tell of the time that is left.
const byClocks = ["bounded drift"] as const;

/** A run that has begun: from when on its interval kept others away, in true time, at the least. */
interface Run {
  readonly by: string;
  readonly began: number;
  readonly until: number;
}

/** Replicas that all want to run something once per interval. */
export function onceWorkload({ world, scenario, wire, kept }: Stage, draw: Draw): Workload {
  const key = keyOf("redlock", "once", name);
  const intervals = new Holds(world, "one run per interval");
  const runs: Run[] = [];
  // The same for all replicas, as it has to be.
  const every = Math.max(20, Math.floor(scenario.ttl * draw.pick([0.2, draw.between(0.5, 2)])));
  const ttl = Math.max(10, Math.floor(every * draw.pick([0.2, 0.5, 1])));
  /** Whether somebody has come through since the faults stopped. */
  let served = false;

  /**
   * A routine begins; the returned function is called when it ends.
   *
   * @param transit ms that the call's last request may have been on its way
   */
  function begin(
    actor: Actor,
    turn: OnceContext,
    invoked: number,
    transit: number,
    length = every,
  ): () => void {
    const { process } = actor;
    const nonce = wire.lastRound(process, key)!;
    const { first, endpoints } = wire.renewed(nonce);
    if (endpoints < quorumOf(scenario.endpoints)) {
      world.violate(
        "a quorum decides",
        `${process.name} runs ${name}, and ${endpoints} endpoints know of it`,
      );
    }
    const budget = turn.remaining();
    if (budget <= 0 && process.running) {
      world.violate("validity is honest", `${process.name} runs ${name} with nothing left of the interval`);
    }
    for (const { by, began, until } of runs) {
      // Whoever asked an endpoint in that interval, and asked again when it was over.
      if (world.now >= until && invoked + transit < until) {
        world.violate(
          "one run per tick",
          `${process.name} called for ${name} at ${invoked.toFixed()}; the interval of ${by} lasted until ${until.toFixed()}`,
        );
      }
      if (world.now >= until) continue;
      world.violate(
        "one run per interval",
        `${process.name} runs ${name}; the interval of ${by} began at ${began.toFixed()} and lasts until ${until.toFixed()}`,
      );
    }
    runs.push({ by: process.name, began: first, until: first + length * fastest - rounding });
    // Never given back, and relied on after the routine's end as well.
    kept.add(nonce);
    const elapsed = stopwatch(process);
    const { signal } = turn;
    const told = () => signal.aborted;
    const hold = newHold({
      resources: [name],
      nonce,
      process,
      remaining: () => budget - elapsed(),
      told,
      invoked,
      acquired: world.now,
      fence: turn.fence,
    });
    intervals.add(hold);
    return () => {
      // Nobody is told any more of the interval's end.
      hold.releaseInvoked = world.now;
    };
  }

  async function perform(actor: Actor): Promise<void> {
    const { process, redlock, calls } = actor;
    const { fencing: _, ...options } = drawOptions(actor);
    // No answer is waited for until after the ttl.
    process.timeout = Math.min(options.timeout, ttl);
    // Replicas wait for longer than others do, and most of them in vain.
    const backoff = { min: 3 * options.backoff.min, max: 3 * options.backoff.max };
    const wait = actor.draw.pick([options.wait, undefined, undefined]);
    const abort = actor.draw.chance(0.1) ? new AbortController() : undefined;
    if (abort) process.timer(actor.draw.between(0, ttl), () => abort.abort(new Error("given up")));
    const length = actor.draw.between(0, actor.draw.chance(0.2) ? 1.5 : 0.3) * every;
    const failure = actor.draw.chance(0.15) ? new Error("the routine failed") : undefined;
    const result = {};
    // Cron calls all replicas at about the same moment.
    if (actor.draw.chance(0.5)) await actor.sleep(1.5 * every - (world.now % (1.5 * every)));
    await actor.sleep(actor.draw.between(0, 0.2) * every);
    const invoked = world.now;
    const { pausedFor } = process;
    // One that is over by now would be refused.
    const deadline = options.deadline && Math.max(options.deadline, process.now() + 1);
    const patience = Math.min(wait ?? 2 * ttl, (deadline ?? Infinity) - process.now());
    const waited = stopwatch(process);
    let ran = false;
    const given = { ...options, backoff, wait, every, ttl, deadline };
    const outcome = await calls.make(
      process,
      `once ${name} ${JSON.stringify(given)}`,
      // The claim has until its own end to become an interval.
      (wait ?? 2 * ttl) + 3 * Math.min(options.timeout, ttl) + ttl + 2 * options.timeout + length,
      ["LOCK_LOST", "NO_QUORUM"],
      () =>
        once(redlock, name, { ...given, signal: abort?.signal }, async (turn) => {
          ran = true;
          const transit = 1.1 * Math.min(options.timeout, ttl) + process.pausedFor - pausedFor + 20;
          const end = begin(actor, turn, invoked, transit);
          await actor.sleep(length);
          end();
          if (failure) throw failure;
          return result;
        }),
      (error) => error === failure || error === abort?.signal.reason,
    );
    if ("error" in outcome) judge(actor, outcome.error, ran ? failure : undefined, ran);
    else {
      judgeOutcome(actor, outcome.value, ran, result);
      if (!outcome.value.ran && waited() < 0.99 * patience) judgeSkip(actor, invoked);
    }
  }

  function judgeOutcome(actor: Actor, outcome: OnceOutcome<unknown>, ran: boolean, result: unknown): void {
    const { process } = actor;
    world.count(outcome.ran ? "once ran" : "once: elsewhere");
    if (outcome.ran !== ran || (outcome.ran && outcome.value !== result)) {
      world.violate("the routine's outcome wins", `${process.name}: ${JSON.stringify(outcome)}, ran: ${ran}`);
    }
    if (outcome.ran) return;
    const { retryAfter } = outcome;
    if (!(retryAfter > 0) || retryAfter > every + rounding) {
      world.violate(
        "refusals are true",
        `${process.name}: ${name} is to be tried again in ${retryAfter} ms`,
        byClocks,
      );
    }
    judgeRefusal(actor, key, null);
  }

  /** Of a claim nobody knows yet whether it becomes a run: only an interval is a reason not to wait. */
  function judgeSkip({ process }: Actor, invoked: number): void {
    const renewed = wire.lastRenewal(key);
    if (renewed + every / fastest + rounding >= invoked) return;
    world.violate(
      "refusals are true",
      `${process.name} does not run ${name}, and no interval has begun`,
      byClocks,
    );
  }

  function judge(actor: Actor, error: unknown, failure: Error | undefined, ran: boolean): void {
    const { process } = actor;
    const what =
      error instanceof QuorumError
        ? "once: no quorum"
        : error instanceof LockLostError
          ? "once: lost"
          : ran
            ? "once threw"
            : "aborted";
    world.count(what);
    if (ran && error !== failure) {
      world.violate("the routine's outcome wins", `${process.name}: ${String(error)} of a routine that ran`);
    }
  }

  /** Somebody comes through, and everybody hears of it. */
  async function turn(actor: Actor, bound: number): Promise<void> {
    const { process, redlock, calls } = actor;
    const options = { every: 5_000, ttl: 1_000 };
    const attempt = async () => {
      const invoked = world.now;
      try {
        const outcome = await once(redlock, name, options, (given) => {
          begin(actor, given, invoked, Number.POSITIVE_INFINITY, options.every)();
          served = true;
        });
        return outcome.ran ? 0 : outcome.retryAfter;
      } catch (error) {
        // Contenders may share the endpoints that answer between them.
        if (error instanceof QuorumError && scenario.silentMinority) return 10;
        throw error;
      }
    };
    await calls.make(process, `turn with ${name}`, bound, [], async () => {
      for (let pause = 0; !served; await actor.sleep(served ? 0 : pause)) pause = await attempt();
    });
  }

  return {
    perform,
    turn,
    leftovers: ["redlock:once:*"],
    look: (process) => intervals.look(process),
    conclude: () => checkFences(world, intervals.all),
  };
}
