import { handoff, LockHeldError, LockLostError, QuorumError, resume } from "../../../src/index.ts";
import type { Lock } from "../../../src/lock/lock.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { type Actor, drawOptions, timeOf } from "./actor.ts";
import type { Outcome } from "./calls.ts";
import {
  checkExtensionRate,
  checkRefusal,
  extend,
  type HeldHandle,
  recordHold,
  release,
  shortenThenExtend,
  verify,
} from "./handles.ts";
import type { Hold } from "./holds.ts";
import { nonceOf } from "./request.ts";

/** A lock that an actor holds. */
interface HeldLock extends HeldHandle {
  readonly lock: Lock;
  /** The timeout of the holder's requests, in ms. */
  readonly timeout: number;
}

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
  const extensions = passesOn && draw.chance(0.5) ? 0 : await useLock(actor, held);
  if (passesOn) {
    await handOff(actor, held);
    return;
  }
  if (!forgets) await release(actor, held, timeout);
  if (fate > 0.95) await release(actor, held, timeout);
  checkExtensionRate(actor, hold, extensions, options);
}

/** When an acquire was called, and until when its lock may be held at most. */
type Times = Pick<Hold, "invoked"> & Partial<Pick<Hold, "limit" | "extensions">>;

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
  const token = draw.chance(actor.scenario.owned) ? draw.pick(["owner-1", "owner-2"]) : undefined;
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
  const given = { ...options, autoExtend, token, maxHold, signal: abort?.signal };
  const hasWaited = actor.wakeUps.begin(process, { ...options, rounds: 4 });
  const outcome = await calls.make(process, {
    what: `${once ? "tryAcquire" : "acquire"} ${resources} ${JSON.stringify(options)}`,
    bound: (once ? 0 : options.wait) + 3 * Math.min(options.timeout, options.ttl),
    codes: ["LOCK_HELD", "NO_QUORUM"],
    run: () => (once ? redlock.tryAcquire(resources, given) : redlock.acquire(resources, given)),
    isExpected: (error) => abort?.signal.reason === error,
  });
  hasWaited();
  const late = world.now - abortedAt;
  const detail = () => `${process.name} went on for ${late.toFixed()} ms after it was aborted`;
  const isAborted = abort && "error" in outcome && outcome.error === abort.signal.reason;
  if (isAborted) world.check("calls end", late <= 0, detail);
  const lock = ("value" in outcome ? outcome.value : undefined) ?? undefined;
  if (!lock) checkFailure(actor, resources, "value" in outcome ? null : outcome.error);
  return { lock, invoked, limit, autoExtend, options };
}

/** Hands a lock off to another process, which extends, uses and releases it. */
async function handOff(actor: Actor, held: HeldLock): Promise<void> {
  const { world, draw, process, calls, locks, kept, wire } = actor;
  const { lock, hold, timeout } = held;
  if (actor.scenario.lingering && draw.chance(0.6)) {
    // It may be executed after the receiver's extension.
    await extend(actor, held, Math.max(10, Math.floor(draw.between(0.3, 0.6) * lock.ttl)), timeout);
  }
  const handed = await calls.make(process, {
    what: "handoff",
    // It waits for extensions under way.
    bound: 4 * timeout,
    codes: ["LOCK_LOST"],
    run: async () => {
      const json = await handoff(lock);
      locks.end(hold);
      hold.releaseInvoked ??= world.now;
      return { json, remaining: json.validUntil - process.now(), at: world.now };
    },
  });
  // A lock that is lost, or that another handle has released, is released like every other.
  if ("error" in handed) return release(actor, held, timeout);
  kept.add(hold.nonce);
  if (actor.scenario.handingOn) await checkHandedOver(actor, held);
  const receiver = draw.pick(actor.actors);
  const { json, remaining, at } = handed.value;
  // As if the two wall clocks agreed.
  const validUntil = receiver.process.now() + remaining - (world.now - at);
  if (!receiver.process.running) return;
  const autoExtend = actor.scenario.handingOn && draw.chance(0.5);
  const maxHold = 3 * actor.scenario.ttl;
  const resumed = resume(receiver.redlock, { ...json, validUntil }, { timeout, autoExtend, maxHold });
  world.count("handed off");
  if (resumed.remaining() <= 0) return;
  // Invoked when the giver's acquire was: a release since then may have ended it. And the giver's extensions may be
  // executed again, after its own and after the receiver's.
  const { invoked, extensions } = hold;
  const received = recordLock(receiver, resumed, { invoked, extensions: { ...extensions } }, true);
  if (draw.chance(0.7)) await extend(receiver, received, 2 * actor.scenario.ttl, timeout);
  await receiver.sleep(draw.between(0, 1.5) * actor.scenario.ttl);
  if (actor.scenario.handingOn && draw.chance(0.4)) {
    world.count("handed on");
    await handOff(receiver, { ...received, lock: resumed, timeout });
    return;
  }
  await release(receiver, received, timeout);
  const { fence, owner, resources, unsettled } = json;
  const isPlain = fence === undefined && owner === "" && resources.length === 1;
  // A receiver that dies keeps the lock until its ttl; and an acquire that is executed late sees no tombstone where it is
  // plain, or where the release got lost: only the giver would get the answer.
  const isGuarded = !isPlain && unsettled.every((name) => wire.isReleased(hold.nonce, name));
  if (isGuarded || unsettled.length === 0) kept.delete(hold.nonce);
}

/** The giver's handle has ended: it relies on nothing, and sends nothing. */
async function checkHandedOver(actor: Actor, { lock, hold, timeout }: HeldLock): Promise<void> {
  const { world, process, calls, wire } = actor;
  const sent = wire.releasesSent(hold.nonce);
  const released = await calls.make(process, {
    what: "release what was handed over",
    bound: timeout,
    codes: [],
    run: () => lock.release(),
  });
  const extended = await calls.make(process, {
    what: "extend what was handed over",
    bound: timeout,
    codes: ["LOCK_LOST"],
    run: () => lock.extend(),
  });
  const isOver = "value" in released && !released.value && "error" in extended && lock.remaining() <= 0;
  const isSilent = wire.releasesSent(hold.nonce) === sent;
  const what = () => `${process.name} still uses ${lock.resources}, which it has handed over`;
  world.check("validity is honest", isOver && isSilent, what);
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
  const acquiring = options.wait + 3 * Math.min(options.timeout, options.ttl);
  const hasWaited = actor.wakeUps.begin(process, { ...options, rounds: 4 });
  const outcome = await calls.make(process, {
    what: `using ${resources} ${JSON.stringify(options)}`,
    bound: acquiring + length + longestUpdate(options.ttl) + 2 * options.timeout + 200,
    codes: ["LOCK_HELD", "NO_QUORUM", "LOCK_LOST"],
    run: () =>
      redlock.using(resources, { ...options, maxHold }, async (lock) => {
        hasWaited();
        const { hold } = recordLock(actor, lock, { invoked, limit }, true);
        run.hold = hold;
        await actor.sleep(length);
        await update(actor, lock);
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

function recordLock(actor: Actor, lock: Lock, times: Times, listens: boolean): HeldHandle {
  const { resources, token: holder, fence } = lock;
  const nonce = nonceOf(lock.value);
  actor.world.count("granted");
  const holds = actor.locks;
  return recordHold(actor, { handle: lock, holds, resources, holder, nonce, fence, listens, ...times });
}

/** An acquire failed: checks the reason. */
function checkFailure(actor: Actor, [resource]: readonly string[], error: unknown): void {
  const held = error === null || error instanceof LockHeldError;
  actor.world.count(held ? "held" : error instanceof QuorumError ? "unavailable" : "aborted");
  checkRefusal(actor, keyOf("redlock", "lock", resource!), error);
}

/** @returns how often the lock was extended by hand */
async function useLock(actor: Actor, held: HeldLock): Promise<number> {
  const { draw, scenario } = actor;
  const { lock, timeout } = held;
  if (scenario.lingering && draw.chance(0.5)) return shortenThenExtend(actor, held, timeout);
  let extensions = 0;
  let concurrent: Promise<unknown> | undefined;
  for (let steps = draw.integer(0, 4); steps > 0; steps -= 1) {
    await actor.sleep(draw.between(0, draw.chance(0.2) ? 1.5 : 0.4) * lock.ttl);
    const step = draw.fraction();
    if (step < 0.45) {
      const length = Math.floor(lock.ttl * draw.pick([1, 1, draw.between(0.1, 1), draw.between(1, 2)]));
      // Sometimes a longer one right after a shorter one that may still be on its way.
      const lengths = draw.chance(0.35) ? [length, 2 * scenario.ttl] : [length];
      for (const each of lengths) {
        extensions += 1;
        const ttl = Math.min(Math.max(10, each), 2 * scenario.ttl);
        const extension = extend(actor, held, ttl, timeout);
        if (draw.chance(0.3)) concurrent = extension;
        else await extension;
      }
    } else if (step < 0.6) {
      await verify(actor, held, timeout);
    } else if (step < 0.9) await update(actor, lock);
  }
  await concurrent;
  return extensions;
}

/** The longest time, in ms, that {@link update} takes. */
export function longestUpdate(ttl: number): number {
  return 2 * ttl + 120;
}

/** Adds one to a fenced account, unless the lock has an owner. */
async function update(actor: Actor, lock: Lock): Promise<void> {
  // Handles of one owner do not exclude each other, neither by the lock nor by fences.
  if (lock.value === lock.token) await updateAccount(actor, lock);
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
