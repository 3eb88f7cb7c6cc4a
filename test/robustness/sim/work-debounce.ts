import { LockLostError, QuorumError } from "../../../src/index.ts";
import { quorumOf } from "../../../src/quorum/tally.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { type DebounceOutcome, debounce } from "../../../src/sync/index.ts";
import { type Actor, drawOptions, type Stage } from "./actor.ts";
import type { Announcement } from "./announcements.ts";
import type { Draw } from "./draw.ts";
import type { Workload } from "./synchronizers.ts";

const name = "reindex";
const key = keyOf("redlock", "debounce", name);

// How much sooner than its window a call may ask again: timers fire early.
const early = 2;

/** A call after the faults. */
interface Turn {
  readonly invoked: number;
  ran: boolean | undefined;
  announcement: Announcement | undefined;
}

/** Bursts of calls of one name, of which the last one is to run. */
export function debounceWorkload({ world, scenario, wire }: Stage, draw: Draw): Workload {
  const { announcements } = wire;
  const { endpoints } = scenario;
  // The same for all: a shorter call is over sooner at an endpoint that a longer one has not reached.
  const window = Math.max(5, Math.floor(scenario.ttl * draw.between(0.2, 1)));
  const ttl = Math.max(10, Math.floor(scenario.ttl * draw.pick([0.3, 0.6, 1])));
  const turns: Turn[] = [];

  /** When a process may have asked again for the first time, and how many then told it yes, and no. */
  function secondRound({ process, sent, told }: Announcement, invoked: number, waited: number) {
    const due = invoked + waited / process.rate - early;
    const asked = sent.find((at) => at >= due) ?? Number.POSITIVE_INFINITY;
    const answers = told.filter(({ at }) => at >= asked);
    const count = (granted: boolean) =>
      new Set(answers.filter((answer) => answer.granted === granted).map(({ server }) => server)).size;
    return { asked, granted: count(true), refused: count(false) };
  }

  /** A routine begins. */
  function begin({ process }: Actor, invoked: number, waited: number): void {
    const own = announcements.last(process, key)!;
    const { asked, granted } = secondRound(own, invoked, waited);
    if (granted < quorumOf(endpoints)) {
      world.violate(
        "a quorum decides",
        `${process.name} runs ${name}, and ${granted} endpoints said once more that it is the last`,
      );
    }
    // One that never asked may run no later than now.
    const least = Math.min(asked, world.now);
    for (const later of announcements.after(own)) {
      const complete = announcements.complete(later);
      if (complete >= least) continue;
      world.violate(
        "a later call takes its place",
        `${process.name} runs ${name}; a quorum has had the later call of ${later.process.name} since ` +
          complete.toFixed(),
      );
    }
  }

  /** A call is told that a later one has taken its place. */
  function judgeSkip({ process }: Actor, invoked: number, waited: number): void {
    const { refused } = secondRound(announcements.last(process, key)!, invoked, waited);
    if (refused >= endpoints - quorumOf(endpoints) + 1) return;
    world.violate("refusals are true", `${process.name} does not run ${name} with ${refused} refusals`);
  }

  async function perform(actor: Actor): Promise<void> {
    const { process, redlock, calls } = actor;
    const { timeout, backoff, ...drawn } = drawOptions(actor);
    const wait = actor.draw.pick([drawn.wait, ttl, 2 * ttl]);
    const abort = actor.draw.chance(0.1) ? new AbortController() : undefined;
    if (abort) process.timer(actor.draw.between(0, 1.2 * window), () => abort.abort(new Error("given up")));
    const length = actor.draw.between(0, 0.3) * window;
    const failure = actor.draw.chance(0.15) ? new Error("the routine failed") : undefined;
    const result = {};
    const invoked = world.now;
    let ran = false;
    const given = { window, ttl, wait, timeout, backoff };
    const outcome = await calls.make(
      process,
      `debounce ${name} ${JSON.stringify(given)}`,
      // It takes its place, waits, asks again for as long as it may, and withdraws.
      wait + 8 * timeout + window + (window + ttl) + 3 * timeout + length,
      ["LOCK_LOST", "NO_QUORUM"],
      () =>
        debounce(redlock, name, { ...given, signal: abort?.signal }, async () => {
          ran = true;
          begin(actor, invoked, window);
          await actor.sleep(length);
          if (failure) throw failure;
          return result;
        }),
      (error) => error === failure || error === abort?.signal.reason,
    );
    if ("error" in outcome) {
      judgeError(actor, outcome.error, ran ? failure : undefined, ran);
      return;
    }
    judgeOutcome(actor, outcome.value, ran, result);
    if (!ran) judgeSkip(actor, invoked, window);
  }

  function judgeOutcome(
    { process }: Actor,
    outcome: DebounceOutcome<unknown>,
    ran: boolean,
    result: unknown,
  ) {
    world.count(outcome.ran ? "debounce ran" : "debounce: a later one");
    if (outcome.ran === ran && (!outcome.ran || outcome.value === result)) return;
    world.violate("the routine's outcome wins", `${process.name}: ${JSON.stringify(outcome)}, ran: ${ran}`);
  }

  function judgeError(actor: Actor, error: unknown, failure: Error | undefined, ran: boolean): void {
    const what =
      error instanceof QuorumError
        ? "debounce: no quorum"
        : error instanceof LockLostError
          ? "debounce: lost"
          : ran
            ? "debounce threw"
            : "aborted";
    world.count(what);
    if (!ran || error === failure) return;
    world.violate(
      "the routine's outcome wins",
      `${actor.process.name}: ${String(error)} of a routine that ran`,
    );
  }

  /** All come in one burst, behind whatever those who died have left there. */
  async function turn(actor: Actor, bound: number): Promise<void> {
    const { process, redlock, calls } = actor;
    await actor.sleep(actor.draw.between(0, 300));
    const one: Turn = { invoked: world.now, ran: undefined, announcement: undefined };
    turns.push(one);
    const options = { window: 500, ttl: 5_000, wait: 10 * bound };
    const outcome = await calls.make(process, "turn of a burst", bound, [], () =>
      debounce(redlock, name, options, () => begin(actor, one.invoked, options.window)),
    );
    one.announcement = announcements.last(process, key);
    if ("value" in outcome) one.ran = outcome.value.ran;
    if (one.ran === false) judgeSkip(actor, one.invoked, options.window);
  }

  /** A burst ends with a run, and where one call began when a quorum had all the others, with that one's. */
  function conclude(): void {
    if (turns.some(({ ran }) => ran === undefined)) return;
    if (!turns.some(({ ran }) => ran)) world.violate("waiters are served", `a burst of ${name} had no run`);
    const last = turns.at(-1);
    const others = turns.slice(0, -1);
    const isBehind = others.every(
      ({ announcement }) => announcements.complete(announcement!) < (last?.invoked ?? 0),
    );
    if (!last || last.ran || !isBehind) return;
    world.violate("waiters are served", `the last call of a burst of ${name} did not run`);
  }

  return { perform, turn, leftovers: [], look: () => undefined, conclude };
}
