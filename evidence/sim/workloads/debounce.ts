import { debounce } from "../../../src/sync/index.ts";
import { checkLast, checkReplaced } from "../checks/debounces.ts";
import type { Draw } from "../draw.ts";
import { keyOf } from "../field.ts";
import type { Announcement } from "../wire/announcements.ts";
import type { World } from "../world/world.ts";
import type { Actor, SharedContext } from "./actor.ts";
import { drawOptions, drawSignal } from "./options.ts";
import { checkRoutine, drawRoutine, runRoutine } from "./routine.ts";
import type { Workload } from "./workload.ts";

const name = "reindex";
const key = keyOf("debounce", name);

/** How many ms before the end of its window a call may send its second round: timers fire early. */
const early = 1;

/** A call after the faults. */
interface Probe {
  /** When it was made, in virtual ms. */
  readonly invoked: number;
  ran: boolean | undefined;
  announcement: Announcement | undefined;
}

/** Bursts of calls of one name, of which the last one is to run. */
export class DebounceWorkload implements Workload {
  readonly #shared: SharedContext;
  readonly #world: World;
  // The same for all: a call with a shorter window would end sooner at an endpoint that a longer one has not reached.
  readonly #window: number;
  readonly #ttl: number;
  readonly #probes: Probe[] = [];

  constructor(shared: SharedContext, draw: Draw) {
    const { world, scenario } = shared;
    this.#shared = shared;
    this.#world = world;
    this.#window = Math.max(5, Math.floor(scenario.ttl * draw.between(0.2, 1)));
    this.#ttl = Math.max(10, Math.floor(scenario.ttl * draw.pick([0.3, 0.6, 1])));
  }

  async perform(actor: Actor): Promise<void> {
    const { process, redlock, calls, draw } = actor;
    const [window, ttl] = [this.#window, this.#ttl];
    const { timeout, backoff, ...drawn } = drawOptions(actor);
    const wait = draw.pick([drawn.wait, ttl, 2 * ttl]);
    const signal = drawSignal(actor, 1.2 * window);
    const routine = drawRoutine(actor, draw.between(0, 0.3) * window);
    const due = dueOf(actor, window);
    const options = { window, ttl, wait, timeout, backoff };
    const outcome = await calls.make(process, {
      counted: "debounce",
      what: `debounce ${name} ${JSON.stringify(options)}`,
      // It announces itself, waits, confirms for as long as it may, and rolls back.
      bound: wait + 8 * timeout + window + (window + ttl) + 3 * timeout + routine.length,
      codes: ["LOCK_LOST", "NO_QUORUM"],
      run: () =>
        debounce(redlock, name, { ...options, signal }, () => {
          checkLast(actor, key, due);
          return runRoutine(actor, routine);
        }),
      failure: routine.failure,
      signal,
    });
    const isReplaced = checkRoutine(actor, routine, outcome);
    if ("value" in outcome) this.#world.count(isReplaced ? "debounce: replaced" : "debounce ran");
    if (isReplaced) checkReplaced(actor, key, due);
  }

  /** All call in one burst, after whatever dead processes have announced. */
  async probe(actor: Actor, bound: number): Promise<void> {
    const { process, redlock, calls } = actor;
    await actor.sleep(actor.draw.between(0, 300));
    const options = { window: 500, ttl: 5_000, wait: 10 * bound };
    const due = dueOf(actor, options.window);
    const probe: Probe = { invoked: this.#world.now, ran: undefined, announcement: undefined };
    this.#probes.push(probe);
    const outcome = await calls.make(process, {
      what: "probe: debounce",
      bound,
      run: () => debounce(redlock, name, options, () => checkLast(actor, key, due)),
    });
    probe.announcement = actor.wire.announcements.last(process, key);
    if ("value" in outcome) probe.ran = outcome.value.ran;
    if (probe.ran === false) checkReplaced(actor, key, due);
  }

  /** A burst ends with a run, and with that of the last call if all others were announced on a quorum before it. */
  checkAtEnd(): void {
    const world = this.#world;
    const probes = this.#probes;
    if (probes.some(({ ran }) => ran === undefined)) return;
    const hasRun = probes.some(({ ran }) => ran);
    world.check("waiters are served", hasRun, () => `a burst of ${name} had no run`);
    const last = probes.at(-1);
    const others = probes.slice(0, -1);
    const isLater = others.every(
      ({ announcement }) => this.#shared.wire.announcements.quorumSince(announcement!) < (last?.invoked ?? 0),
    );
    if (!last || !isLater) return;
    const what = () => `the last call of a burst of ${name} did not run`;
    world.check("waiters are served", last.ran === true, what);
  }
}

/** From when on a call that is made now may send its second round. Its window is by the clock of the process. */
function dueOf({ world, process }: Actor, window: number): number {
  // The last part is for rounding: times are sums of floating-point numbers.
  return world.now + (window - early) / process.rate - 1e-6;
}
