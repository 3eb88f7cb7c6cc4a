import { type Lock, LockLostError } from "../../../src/index.ts";
import type { Hold } from "../checks/holds.ts";
import { keyOf } from "../field.ts";
import type { Work } from "../world/scenario.ts";
import type { Actor, SharedContext } from "./actor.ts";
import type { Outcome } from "./calls.ts";
import {
  type AcquiredHandle,
  checkExtensionRate,
  checkRefusal,
  type HeldHandle,
  recordLock,
} from "./handles.ts";
import { handOff } from "./handoff.ts";
import { HoldWorkload } from "./hold.ts";
import { drawOptions, noteOf, timeOf } from "./options.ts";
import { isRunProber } from "./probers.ts";

/** Locks of one resource or several, perhaps with fences, which are handed off or guard an account. */
export class LockWorkload extends HoldWorkload<Lock> {
  readonly blockingKeys = ["redlock:lock:*"];

  constructor(shared: SharedContext) {
    super(shared, "lock", shared.scenario.resources[0]!, shared.locks);
  }

  perform(actor: Actor, kind: Work): Promise<void> {
    if (kind === "using") return performUsing(actor);
    return kind === "burst" ? this.#performBurst(actor) : this.#lock(actor, drawResources(actor));
  }

  async probe(actor: Actor, bound: number): Promise<void> {
    if (isRunProber(actor)) return;
    const { redlock, scenario } = actor;
    const options = { ttl: 5_000, wait: 10 * bound, fencing: scenario.fencing };
    const run = () => redlock.acquire(this.name, options);
    await this.serve(actor, bound, { what: `acquire ${this.name}`, run, counted: "lock" });
  }

  /** Acquires several locks in the same turn, and uses them side by side. Each resource is asked for once. */
  async #performBurst(actor: Actor): Promise<void> {
    const { draw, process, scenario } = actor;
    const locks = scenario.resources
      .filter(() => draw.chance(0.7))
      .map((resource) => this.#lock(actor, [resource]));
    // Each has a timeout of its own.
    process.timeout = 0;
    await Promise.all(locks);
  }

  #lock(actor: Actor, resources: string[]): Promise<void> {
    const { redlock, scenario } = actor;
    const { fencing } = scenario;
    return this.use(actor, {
      counted: "lock",
      resources,
      key: keyOf("lock", resources[0]!),
      what: `acquire ${resources}`,
      rounds: 4,
      acquire: (how, given, note) => redlock[how](resources, { ...given, note, fencing }),
      update: (lock) => updateAccount(actor, lock),
      passOn: scenario.handingOff ? (held, timeout) => handOff(actor, { ...held, timeout }) : undefined,
    });
  }

  protected override record(actor: Actor, acquired: AcquiredHandle<Lock>): HeldHandle {
    return recordLock(actor, acquired);
  }
}

/** Runs a routine under a lock. */
async function performUsing(actor: Actor): Promise<void> {
  const { world, draw, process, redlock, calls, scenario } = actor;
  const resources = drawResources(actor);
  const options = drawOptions(actor);
  const { ttl, timeout } = options;
  const maxHold = draw.pick([ttl, 5 * ttl]);
  const length = draw.between(0, 3) * ttl;
  const failure = draw.chance(0.2) ? new Error("the routine failed") : undefined;
  const result = {};
  let hold: Hold | undefined;
  let lost = false;
  let returned = false;
  const note = noteOf(actor, ttl);
  const times = { invoked: world.now, limit: timeOf(actor, options.deadline), note };
  const acquiring = options.wait + 3 * Math.min(timeout, ttl);
  const outcome = await calls.make(process, {
    counted: "using",
    what: `using ${resources} ${JSON.stringify(options)}`,
    bound: acquiring + length + longestUpdate(ttl) + 2 * timeout + 200,
    waits: { ...options, rounds: 4 },
    codes: ["LOCK_HELD", "NO_QUORUM", "LOCK_LOST"],
    run: () =>
      redlock.using(resources, { ...options, fencing: scenario.fencing, maxHold, note }, async (lock) => {
        actor.wakeUps.served(process);
        const recorded = recordLock(actor, { handle: lock, ...times, listens: true }).hold;
        hold = recorded;
        await actor.sleep(length);
        await updateAccount(actor, lock);
        recorded.releaseInvoked = world.now;
        lost = lock.signal.aborted;
        if (!lost) actor.locks.end(recorded);
        returned = true;
        if (failure) throw failure;
        return result;
      }),
    failure,
  });
  if (hold) checkExtensionRate(actor, hold, 0, options);
  else if ("error" in outcome)
    checkRefusal(actor, keyOf("lock", resources[0]!), times.invoked, outcome.error);
  if ("value" in outcome) world.count("using returned");
  if (returned) checkUsing(actor, { failure, lost, result }, outcome);
}

/** `using` rejects with the routine's error, else with the loss of the lock; else it returns the routine's value. */
function checkUsing(
  { world, process }: Actor,
  {
    failure,
    lost,
    result,
  }: { readonly failure: Error | undefined; readonly lost: boolean; readonly result: object },
  outcome: Outcome<unknown>,
): void {
  const { error, value } = { error: undefined, value: undefined, ...outcome };
  const isLoss = error instanceof LockLostError;
  const isRight = failure ? error === failure : lost ? isLoss : value === result;
  const routine = failure ? "threw" : lost ? "lost" : "returned";
  const what = () => `${process.name}: ${routine}, but using said ${JSON.stringify(outcome)}`;
  world.check("the routine's outcome wins", isRight, what);
}

/** One or all of the scenario's resources. */
export function drawResources({ draw, scenario }: Actor): string[] {
  const { resources } = scenario;
  if (resources.length === 1 || draw.chance(0.3)) return [...resources];
  return [draw.pick(resources)];
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
