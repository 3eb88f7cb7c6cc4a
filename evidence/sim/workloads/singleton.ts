import {
  type ReplaceOutcome,
  type SingletonContext,
  type SingletonMode,
  singleton,
} from "../../../src/sync/index.ts";
import { checkLast, checkReplaced } from "../checks/debounces.ts";
import { Holds } from "../checks/holds.ts";
import type { Draw } from "../draw.ts";
import { keyOf } from "../field.ts";
import type { World } from "../world/world.ts";
import type { Actor, SharedContext } from "./actor.ts";
import { drawOptions, drawSignal } from "./options.ts";
import type { Workload } from "./workload.ts";

const name = "index";
const key = keyOf("singleton", name);
const lockKey = keyOf("lock", name);

/** One call. Times are virtual ms. */
interface SingleCall {
  readonly invoked: number;
  /** When its lock was acquired. */
  granted: number;
  began?: number;
}

/** A call after the faults, and whether it has ended without an error. */
interface Probe extends SingleCall {
  isDone: boolean;
}

/** Jobs of which one runs at a time. All calls of a world have the same mode. */
export class SingletonWorkload implements Workload {
  readonly blockingKeys: readonly string[] = ["redlock:lock:*"];
  readonly #world: World;
  readonly holds: Holds;
  readonly #mode: SingletonMode;
  readonly #ttl: number;
  readonly #probes: Probe[] = [];

  constructor({ world, scenario }: SharedContext, draw: Draw) {
    this.#world = world;
    this.holds = new Holds(world, "mutual exclusion");
    this.#mode = draw.pick(["skip", "coalesce", "cancel", "cancel"]);
    this.#ttl = Math.max(10, scenario.ttl);
  }

  async perform(actor: Actor): Promise<void> {
    const { process, redlock, calls, draw } = actor;
    const [mode, ttl] = [this.#mode, this.#ttl];
    const { timeout, backoff } = drawOptions(actor);
    const wait = 3 * ttl;
    const signal = drawSignal(actor, 2 * ttl);
    const length = draw.between(0, 1.5) * ttl;
    const isDeaf = draw.chance(0.2);
    const failure = draw.chance(0.1) ? new Error("the job failed") : undefined;
    const call: SingleCall = { invoked: this.#world.now, granted: 0 };
    const options = { mode, ttl, wait, timeout, backoff, maxHold: 3 * ttl };
    const outcome = await calls.make(process, {
      counted: "singleton",
      what: `singleton ${name} ${JSON.stringify(options)}`,
      // It announces itself, waits, looks once more, and rolls back.
      bound: 2 * wait + 12 * timeout + length,
      codes: ["LOCK_HELD", "LOCK_LOST", "NO_QUORUM"],
      run: () =>
        singleton(redlock, name, { ...options, signal, ...noting(this.#world, call) }, (context) =>
          this.#run(actor, call, context, async () => {
            for (let left = length; left > 0; left -= ttl / 10) {
              await actor.sleep(Math.min(left, ttl / 10));
              if (context.signal.aborted && !isDeaf) throw context.signal.reason;
            }
            if (failure) throw failure;
          }),
        ),
      failure,
      signal,
    });
    if ("value" in outcome) this.#checkOutcome(actor, call, outcome.value as ReplaceOutcome<void>);
  }

  /** All call, after what dead processes have left behind. */
  async probe(actor: Actor, bound: number): Promise<void> {
    const { process, redlock, calls } = actor;
    await actor.sleep(actor.draw.between(0, 300));
    const options = { mode: this.#mode, ttl: 1_000, wait: 10 * bound };
    const probe: Probe = { invoked: this.#world.now, granted: 0, isDone: false };
    this.#probes.push(probe);
    const outcome = await calls.make(process, {
      what: "probe: singleton",
      bound,
      run: () =>
        singleton(redlock, name, { ...options, ...noting(this.#world, probe) }, (context) =>
          this.#run(actor, probe, context, () => actor.sleep(10)),
        ),
    });
    probe.isDone = "value" in outcome;
  }

  /** Of several calls one has run; and with all modes but `skip`, one has begun after the last of them. */
  checkAtEnd(): void {
    const probes = this.#probes;
    if (probes.length === 0 || probes.some(({ isDone }) => !isDone)) return;
    const last = Math.max(...probes.map(({ invoked }) => invoked));
    const began = Math.max(...probes.map((probe) => probe.began ?? -1));
    const least = this.#mode === "skip" ? 0 : last;
    const what = () =>
      `the last call of ${name} was made at ${last.toFixed()}, the last job began at ${began.toFixed()}`;
    this.#world.check("waiters are served", began >= least, what);
  }

  /** A job begins, and ends. */
  async #run(
    actor: Actor,
    call: SingleCall,
    context: SingletonContext,
    job: () => Promise<void>,
  ): Promise<void> {
    const { process, world, wire } = actor;
    const { fence, signal } = context;
    call.began = world.now;
    // Announcements outlive the time for which an endpoint without its memory stays away.
    if (this.#mode !== "skip") checkLast(actor, key, call.granted, ["kept memory"]);
    const hold = this.holds.grant({
      resources: [name],
      nonce: wire.lastRound(process, lockKey) ?? process.name,
      process,
      remaining: () => context.remaining(),
      signal,
      invoked: call.invoked,
      fence,
    });
    try {
      await job();
    } finally {
      this.holds.release(hold);
    }
  }

  #checkOutcome(actor: Actor, call: SingleCall, outcome: ReplaceOutcome<void>): void {
    const { world, process } = actor;
    const isCancelled = !outcome.ran && outcome.began === true;
    const hasBegun = call.began !== undefined;
    world.count(outcome.ran ? "singleton ran" : isCancelled ? "singleton: cancelled" : "singleton: left");
    world.check(
      "the routine's outcome wins",
      hasBegun === (outcome.ran || isCancelled),
      () => `${process.name}: ${JSON.stringify(outcome)}, began: ${hasBegun}`,
    );
    if (!outcome.ran && this.#mode !== "skip") checkReplaced(actor, key, call.invoked);
  }
}

/** Notes when the lock was acquired. */
function noting(world: World, call: SingleCall) {
  return {
    onEvent: ({ type }: { readonly type: string }) => {
      if (type === "acquired") call.granted = world.now;
    },
  };
}
