import { type Lock, LockHeldError, LockLostError, QuorumError } from "../../src/index.ts";
import { type Actor, drawOptions, noteOf, timeOf } from "./actor.ts";
import type { Outcome } from "./calls.ts";
import { keyOf } from "./field.ts";
import { checkExtensionRate, checkRefusal, release, useHandle } from "./handles.ts";
import { recordLock, type Times } from "./held-lock.ts";
import type { Hold } from "./holds.ts";
import { handOff } from "./work-handoff.ts";

/** Acquires a lock, uses it, and releases it, hands it off, or forgets it. */
export async function performLock(actor: Actor): Promise<void> {
  const { draw, kept, scenario } = actor;
  const { lock, autoExtend, options, ...times } = await acquireLock(actor);
  if (!lock) return;
  const { timeout } = options;
  const held = { ...recordLock(actor, lock, times, draw.chance(0.5) || autoExtend), lock, timeout };
  const { hold } = held;
  const fate = draw.fraction();
  const forgets = fate < 0.08;
  if (forgets) kept.add(hold.nonce);
  const passesOn = scenario.handingOff && !forgets && draw.chance(0.7);
  // What has been held for long may have too little validity left for a handoff.
  const extensions =
    passesOn && draw.chance(0.5)
      ? 0
      : await useHandle(actor, held, timeout, () => updateAccount(actor, lock));
  if (passesOn) {
    await handOff(actor, held);
    return;
  }
  if (!forgets) await release(actor, held, timeout);
  if (fate > 0.95) await release(actor, held, timeout);
  checkExtensionRate(actor, hold, extensions, options);
}

/** Acquires several locks in the same turn, and uses them side by side. Each resource is asked for once. */
export async function performBurst(actor: Actor): Promise<void> {
  const { draw, process, scenario } = actor;
  const locks = scenario.resources
    .filter(() => draw.chance(0.7))
    .map((resource) => performLock({ ...actor, scenario: { ...scenario, resources: [resource] } }));
  // Each has a timeout of its own.
  process.timeout = 0;
  await Promise.all(locks);
}

/** What came of an acquire. */
interface Acquisition extends Times {
  /** undefined: it failed. */
  readonly lock: Lock | undefined;
  readonly autoExtend: boolean;
  readonly options: ReturnType<typeof drawOptions>;
}

async function acquireLock(actor: Actor): Promise<Acquisition> {
  const { world, draw, process, redlock, calls } = actor;
  const resources = drawResources(actor);
  const options = drawOptions(actor);
  const autoExtend = draw.chance(0.3);
  const abort = draw.chance(0.15) ? new AbortController() : undefined;
  let abortedAt = Number.POSITIVE_INFINITY;
  if (abort) {
    process.timer(draw.between(0, options.ttl), () => {
      abortedAt = world.now;
      abort.abort(new Error("given up"));
    });
  }
  const once = draw.chance(0.2);
  const invoked = world.now;
  const limit = timeOf(actor, options.deadline);
  const maxHold = draw.pick([options.ttl, 3 * options.ttl]);
  const note = noteOf(actor, options.ttl);
  const given = { ...options, autoExtend, maxHold, signal: abort?.signal, note };
  const hasWaited = actor.wakeUps.begin(process, { ...options, rounds: 4 });
  const outcome = await calls.make(process, {
    what: `${once ? "tryAcquire" : "acquire"} ${resources} ${JSON.stringify(options)}`,
    bound: (once ? 0 : options.wait) + 3 * Math.min(options.timeout, options.ttl),
    codes: ["LOCK_HELD", "NO_QUORUM"],
    run: () =>
      once ? redlock.tryAcquire(resources, { ...given, wait: 0 }) : redlock.acquire(resources, given),
    isExpected: (error) => abort?.signal.reason === error,
  });
  hasWaited();
  const late = world.now - abortedAt;
  const detail = () => `${process.name} went on for ${late.toFixed()} ms after it was aborted`;
  const isAborted = abort && "error" in outcome && outcome.error === abort.signal.reason;
  if (isAborted) world.check("calls end", late <= 0, detail);
  const lock = ("value" in outcome ? outcome.value : undefined) ?? undefined;
  if (!lock) checkFailure(actor, resources, "value" in outcome ? null : outcome.error);
  return { lock, invoked, limit, note, autoExtend, options };
}

/** The random parameters of a `using`, and what its routine saw. */
interface UsingRun {
  /** ms for which the routine runs, before its update. */
  readonly length: number;
  readonly failure: Error | undefined;
  readonly result: object;
  hold: Hold | undefined;
  /** Whether the lock was lost when the routine ended. */
  lost: boolean;
  returned: boolean;
}

/** Runs a routine under a lock. */
export async function performUsing(actor: Actor): Promise<void> {
  const { world, draw, process, redlock, calls } = actor;
  const resources = drawResources(actor);
  const options = drawOptions(actor);
  const maxHold = draw.pick([options.ttl, 5 * options.ttl]);
  const length = draw.between(0, 3) * options.ttl;
  const failure = draw.chance(0.2) ? new Error("the routine failed") : undefined;
  const run: UsingRun = { length, failure, result: {}, hold: undefined, lost: false, returned: false };
  const invoked = world.now;
  const limit = timeOf(actor, options.deadline);
  const note = noteOf(actor, options.ttl);
  const acquiring = options.wait + 3 * Math.min(options.timeout, options.ttl);
  const hasWaited = actor.wakeUps.begin(process, { ...options, rounds: 4 });
  const outcome = await calls.make(process, {
    what: `using ${resources} ${JSON.stringify(options)}`,
    bound: acquiring + length + longestUpdate(options.ttl) + 2 * options.timeout + 200,
    codes: ["LOCK_HELD", "NO_QUORUM", "LOCK_LOST"],
    run: () =>
      redlock.using(resources, { ...options, maxHold, note }, async (lock) => {
        hasWaited();
        const { hold } = recordLock(actor, lock, { invoked, limit, note }, true);
        run.hold = hold;
        await actor.sleep(length);
        await updateAccount(actor, lock);
        hold.releaseInvoked = world.now;
        run.lost = lock.signal.aborted;
        if (!run.lost) actor.locks.end(hold);
        run.returned = true;
        if (failure) throw failure;
        return run.result;
      }),
    isExpected: (error) => error === failure,
  });
  const { hold } = run;
  hasWaited();
  if (hold) {
    hold.releaseReturned = world.now;
    checkExtensionRate(actor, hold, 0, options);
  } else if ("error" in outcome) checkFailure(actor, resources, outcome.error);
  if (run.returned) checkUsing(actor, run, outcome);
}

/** `using` rejects with the routine's error, else with the loss of the lock; else it returns the routine's value. */
function checkUsing(
  { world, process }: Actor,
  { failure, lost, result }: UsingRun,
  outcome: Outcome<unknown>,
): void {
  const what = failure ? "threw" : lost ? "lost" : "returned";
  let right: boolean;
  if (failure) right = "error" in outcome && outcome.error === failure;
  else if (lost) right = "error" in outcome && outcome.error instanceof LockLostError;
  else right = "value" in outcome && outcome.value === result;
  world.check(
    "the routine's outcome wins",
    right,
    () => `${process.name}: ${what}, but using said ${JSON.stringify(outcome)}`,
  );
  world.count(`using ${what}`);
}

/** After the faults: acquires and releases the lock once. It must be served within `bound` ms. */
export async function probeLock(actor: Actor, bound: number): Promise<void> {
  const { world, process, redlock, calls, scenario, draw } = actor;
  const [resource] = scenario.resources;
  const invoked = world.now;
  const outcome = await calls.make(process, {
    what: `probe: acquire ${resource}`,
    bound,
    codes: [],
    run: () => redlock.acquire(resource!, { ttl: 5_000, wait: 10 * bound, fencing: scenario.fencing }),
  });
  if ("error" in outcome) return;
  const held = recordLock(actor, outcome.value, { invoked }, false);
  await actor.sleep(draw.between(1, 30));
  await release(actor, held, 1_000);
}

/** One or all of the scenario's resources. */
export function drawResources({ draw, scenario }: Actor): string[] {
  const { resources } = scenario;
  if (resources.length === 1 || draw.chance(0.3)) return [...resources];
  return [draw.pick(resources)];
}

/** An acquire failed: checks the reason. */
function checkFailure(actor: Actor, [resource]: readonly string[], error: unknown): void {
  const held = error === null || error instanceof LockHeldError;
  actor.world.count(held ? "held" : error instanceof QuorumError ? "unavailable" : "aborted");
  checkRefusal(actor, keyOf("lock", resource!), error);
}

/** The longest time, in ms, that {@link updateAccount} takes. */
export function longestUpdate(ttl: number): number {
  return 2 * ttl + 120;
}

/** Adds one to a fenced account. A careless holder ignores its validity; then only the fence refuses it. */
export async function updateAccount(
  actor: Actor,
  lock: Pick<Lock, "resources" | "fence" | "ttl"> & { remaining(): number },
): Promise<void> {
  const { process, ledger, draw } = actor;
  const careless = draw.chance(0.3);
  if (lock.fence === undefined || (lock.remaining() <= 0 && !careless)) return;
  const [account] = lock.resources;
  const balance = await ledger.open(process, account!, lock.fence);
  if (balance === undefined) return;
  await actor.sleep(draw.between(0, careless ? 2 : 0.3) * lock.ttl);
  if (lock.remaining() > 0 || careless) await ledger.write(process, account!, lock.fence, balance + 1);
}
