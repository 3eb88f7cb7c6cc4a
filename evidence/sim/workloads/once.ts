import { QuorumError } from "../../../src/index.ts";
import { type OnceContext, once } from "../../../src/sync/index.ts";
import { Holds } from "../checks/holds.ts";
import type { Draw } from "../draw.ts";
import { keyOf, quorumOf } from "../field.ts";
import type { World } from "../world/world.ts";
import type { Actor, SharedContext } from "./actor.ts";
import { checkRefusal } from "./handles.ts";
import { drawOptions, drawSignal } from "./options.ts";
import { checkRoutine, drawRoutine, runRoutine } from "./routine.ts";
import type { Workload } from "./workload.ts";

const name = "nightly";
const key = keyOf("once", name);

/** ms of true time that pass while the fastest endpoint's clock counts one: a key may stand for less than its ttl. */
const fastest = 0.995;

/** ms that Redis rounds off. */
const rounding = 1;

/** What remaining times that endpoints return depend on. */
const byClocks = ["bounded drift"] as const;

/** A run that has begun, and the least span of true time in which its interval keeps others away. */
interface Run {
  readonly by: string;
  readonly until: number;
}

/** A call, and what is known when its routine begins. */
interface Call {
  readonly by: string;
  /** When it was made, in virtual ms. */
  readonly invoked: number;
  /** The interval, in ms. */
  readonly every: number;
  /** ms for which the call's last request may have been on its way when its routine begins. */
  readonly transit: () => number;
}

/** Replicas that all want to run something once per interval. */
export class OnceWorkload implements Workload {
  readonly blockingKeys: readonly string[] = ["redlock:once:*"];
  readonly #world: World;
  readonly holds: Holds;
  readonly #runs: Run[] = [];
  // The same for all replicas, as `once` requires.
  readonly #every: number;
  readonly #ttl: number;
  /** Whether a probe has run. */
  #served = false;

  constructor({ world, scenario }: SharedContext, draw: Draw) {
    this.#world = world;
    this.holds = new Holds(world, "one run per interval");
    this.#every = Math.max(20, Math.floor(scenario.ttl * draw.pick([0.2, draw.between(0.5, 2)])));
    this.#ttl = Math.max(10, Math.floor(this.#every * draw.pick([0.2, 0.5, 1])));
  }

  async perform(actor: Actor): Promise<void> {
    const { process, redlock, calls } = actor;
    const [every, ttl] = [this.#every, this.#ttl];
    const { options, wait, signal, routine } = this.#draw(actor);
    await this.#sleepUntilTick(actor);
    const { pausedFor } = process;
    const { timeout } = options;
    const call: Call = {
      by: process.name,
      invoked: this.#world.now,
      every,
      transit: () => Math.min(timeout, ttl) / process.rate + process.pausedFor - pausedFor + 4,
    };
    // A deadline that is over by now would be refused.
    const deadline = options.deadline && Math.max(options.deadline, process.wallClock() + 1);
    const waitable = Math.min(wait, (deadline ?? Infinity) - process.wallClock());
    const { disturbances } = process;
    const given = { ...options, every, ttl, deadline };
    const outcome = await calls.make(process, {
      counted: "once",
      what: `once ${name} ${JSON.stringify(given)}`,
      // A claim becomes an interval before its own ttl ends, or never.
      bound: wait + 3 * Math.min(timeout, ttl) + ttl + 2 * timeout + routine.length,
      codes: ["LOCK_LOST", "NO_QUORUM"],
      run: () =>
        once(redlock, name, { ...given, signal }, (context) =>
          runRoutine(actor, routine, this.#begins(actor, context, call)),
        ),
      failure: routine.failure,
      signal,
    });
    const isElsewhere = checkRoutine(actor, routine, outcome);
    if ("error" in outcome) return;
    this.#world.count(isElsewhere ? "once: elsewhere" : "once ran");
    if (outcome.value.ran) return;
    checkRefusal(actor, key, call.invoked, null);
    const { retryAfter } = outcome.value;
    const isTrue = retryAfter > 0 && retryAfter <= every + rounding;
    const what = () => `${process.name} is to try again in ${retryAfter} ms`;
    this.#world.check("refusals are true", isTrue, what, byClocks);
    // One that has waited to its end returns when to try again, whatever becomes of the claim that it met.
    const waited = (this.#world.now - call.invoked) * process.rate;
    const hasGoodClocks = process.disturbances === disturbances;
    if (hasGoodClocks && waited < 0.99 * waitable) this.#checkSkip(actor, call);
  }

  /** One replica runs, and all others learn of it. */
  async probe(actor: Actor, bound: number): Promise<void> {
    await actor.calls.make(actor.process, {
      what: `probe ${name}`,
      bound,
      run: async () => {
        for (let pause = 0; !this.#served; await actor.sleep(this.#served ? 0 : pause)) {
          pause = await this.#tryProbe(actor);
        }
      },
    });
  }

  /** The random parameters of a call. `wait`: ms that it waits for an interval to end, unless its deadline comes first. */
  #draw(actor: Actor) {
    const { process, draw } = actor;
    const ttl = this.#ttl;
    const drawn = drawOptions(actor);
    // The call waits for no answer that comes after the ttl.
    process.timeout = Math.min(drawn.timeout, ttl);
    // Replicas wait for longer than others do, and most of them do not run.
    const backoff = { min: 3 * drawn.backoff.min, max: 3 * drawn.backoff.max };
    const wait = draw.pick([drawn.wait, undefined, undefined]);
    const signal = drawSignal(actor, ttl);
    const length = draw.between(0, draw.chance(0.2) ? 1.5 : 0.3) * this.#every;
    const routine = drawRoutine(actor, length);
    return { options: { ...drawn, backoff, wait }, wait: wait ?? 2 * ttl, signal, routine };
  }

  /** Cron calls all replicas at about the same moment. */
  async #sleepUntilTick(actor: Actor): Promise<void> {
    const tick = 1.5 * this.#every;
    if (actor.draw.chance(0.5)) await actor.sleep(tick - (this.#world.now % tick));
    await actor.sleep(actor.draw.between(0, 0.2) * this.#every);
  }

  /** @returns ms until the next attempt */
  async #tryProbe(actor: Actor): Promise<number> {
    const options = { every: 5_000, ttl: 1_000 };
    const { every } = options;
    const call: Call = {
      by: actor.process.name,
      invoked: this.#world.now,
      every,
      transit: () => Number.POSITIVE_INFINITY,
    };
    try {
      const outcome = await once(actor.redlock, name, options, (context) => {
        this.#begins(actor, context, call)();
        this.#served = true;
      });
      return outcome.ran ? 0 : outcome.retryAfter;
    } catch (error) {
      // Where an endpoint is silent, two callers may divide the others between them.
      if (error instanceof QuorumError && actor.scenario.silentMinority) return 10;
      throw error;
    }
  }

  /**
   * A routine begins.
   *
   * @returns to be called when the routine ends
   */
  #begins(actor: Actor, context: OnceContext, call: Call): () => void {
    const { process, world, wire, scenario, kept } = actor;
    const nonce = wire.lastRound(process, key)!;
    const extended = wire.trailsOf(nonce).flatMap(({ firstExtended = [] }) => firstExtended);
    world.check(
      "a quorum decides",
      extended.length >= quorumOf(scenario.endpoints),
      () => `${process.name} runs ${name}, and ${extended.length} endpoints know of it`,
    );
    const budget = context.remaining();
    this.#checkInterval(call, Math.min(...extended));
    // An interval is never released, and is relied on after the routine's end as well.
    kept.add(nonce);
    const began = world.now;
    const { signal, fence } = context;
    const hold = this.holds.grant({
      resources: [name],
      nonce,
      process,
      // It outlives the routine, and with that the context.
      remaining: () => budget - (world.now - began) * process.rate,
      signal,
      invoked: call.invoked,
      fence,
    });
    return () => {
      // From now on nobody is informed of the interval's end.
      hold.releaseInvoked = world.now;
    };
  }

  /**
   * No other run's interval lasts, or has ended only while this call waited.
   *
   * @param stored when the first endpoint stored the run
   */
  #checkInterval({ by, invoked, every, transit }: Call, stored: number): void {
    const world = this.#world;
    for (const { by: other, until } of this.#runs) {
      const isOver = world.now >= until;
      const what = () => `${by} runs; the interval of ${other} lasts until ${until.toFixed()}`;
      world.check("one run per interval", isOver, what);
      if (!isOver) continue;
      // Otherwise it asked an endpoint within that interval, and asked again when it was over.
      const isEarlier = invoked + transit() >= until;
      const called = () =>
        `${by} runs, and called at ${invoked.toFixed()}; the interval of ${other} lasted until ${until.toFixed()}`;
      world.check("one run per tick", isEarlier, called);
    }
    this.#runs.push({ by, until: stored + every * fastest - rounding });
  }

  /** Only an interval is a reason not to wait: nobody knows yet whether a claim becomes a run. */
  #checkSkip({ process, wire }: Actor, { invoked }: Call): void {
    const extended = wire.lastExtension(key);
    this.#world.check(
      "refusals are true",
      extended + this.#every / fastest + rounding >= invoked,
      () => `${process.name} does not run ${name}, and no interval has begun`,
      byClocks,
    );
  }
}
