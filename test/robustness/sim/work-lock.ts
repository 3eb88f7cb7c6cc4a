import { handoff, LockHeldError, LockLostError, QuorumError, resume } from "../../../src/index.ts";
import type { Lock } from "../../../src/lock/lock.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { type Actor, drawOptions } from "./actor.ts";
import { boundRenewals, extend, giveBack, type Held, hand, judgeRefusal, linger } from "./handles.ts";
import type { Hold } from "./holds.ts";
import { nonceOf } from "./request.ts";

/** Takes a lock, does something with it, and gives it back, or not. */
export async function workLock(actor: Actor): Promise<void> {
  const { world, draw, process, redlock, calls, kept } = actor;
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
  const maxHold = draw.pick([options.ttl, 3 * options.ttl]);
  const asked = { ...options, autoExtend, token, maxHold, signal: abort?.signal };
  const outcome = await calls.make(
    process,
    `${once ? "tryAcquire" : "acquire"} ${resources} ${JSON.stringify(options)}`,
    (once ? 0 : options.wait) + 3 * Math.min(options.timeout, options.ttl),
    ["LOCK_HELD", "NO_QUORUM"],
    () => (once ? redlock.tryAcquire(resources, asked) : redlock.acquire(resources, asked)),
    (error) => abort?.signal.reason === error,
  );
  const late = world.now - abortedAt;
  if ("error" in outcome && outcome.error === abort?.signal.reason && late > 0) {
    world.violate("calls end", `${process.name} went on for ${late.toFixed()} ms after it was aborted`);
  }
  const lock = "value" in outcome ? outcome.value : undefined;
  if (!lock) {
    judge(actor, resources, "value" in outcome ? null : outcome.error);
    return;
  }

  const held = handLock(actor, lock, invoked, draw.chance(0.5) || autoExtend);
  const { hold } = held;
  const plan = draw.fraction();
  if (plan < 0.08) kept.add(hold.nonce); // its holder forgets it
  const passesOn = actor.scenario.handing && plan >= 0.08 && draw.chance(0.7);
  // What has been held for long may not be worth handing over.
  const extensions = passesOn && draw.chance(0.5) ? 0 : await useLock(actor, lock, held, options.timeout);
  if (passesOn) {
    await passOn(actor, lock, held, options.timeout);
    return;
  }
  if (plan >= 0.08) await giveBack(actor, held, options.timeout);
  if (plan > 0.95) await giveBack(actor, held, options.timeout);
  boundRenewals(actor, hold, extensions, options.backoff.min);
}

/** Hands a lock over to another process, which extends it, uses it and gives it back. */
async function passOn(actor: Actor, lock: Lock, held: Held, timeout: number): Promise<void> {
  const { world, draw, process, calls, locks, kept } = actor;
  const { hold } = held;
  if (actor.scenario.lingering && draw.chance(0.6)) {
    // Perhaps it is executed when the receiver has extended it.
    await extend(actor, held, Math.max(10, Math.floor(draw.between(0.3, 0.6) * lock.ttl)), timeout);
  }
  // It waits for extensions under way.
  const handed = await calls.make(process, "handoff", 4 * timeout, ["LOCK_LOST"], async () => {
    const json = await handoff(lock);
    locks.end(hold);
    hold.releaseInvoked ??= world.now;
    return { json, left: json.validUntil - process.now(), at: world.now };
  });
  // What is lost, or was released by another handle, is given back like everything else.
  if ("error" in handed) return giveBack(actor, held, timeout);
  kept.add(hold.nonce);
  const receiver = draw.pick(actor.actors);
  const { json, left, at } = handed.value;
  // As if the two wall clocks agreed.
  const validUntil = receiver.process.now() + left - (world.now - at);
  if (!receiver.process.running) return;
  const resumed = resume(receiver.redlock, { ...json, validUntil }, { timeout });
  world.count("handed over");
  if (resumed.remaining() <= 0) return;
  // Asked for when the giver did: what has been released since then may have ended it.
  const received = handLock(receiver, resumed, hold.invoked, true);
  // What the giver asked for may be executed a second time behind what the receiver asks for.
  received.hold.extensions.least = hold.extensions.least;
  if (draw.chance(0.7)) await extend(receiver, received, 2 * actor.scenario.ttl, timeout);
  await receiver.sleep(draw.between(0, 1.5) * actor.scenario.ttl);
  await giveBack(receiver, received, timeout);
  // A receiver that dies keeps it until its ttl. And a plain take that is late finds no tombstone: the giver hears of it,
  // but cannot know whether the lock is still held.
  if (json.unsettled.length === 0) kept.delete(hold.nonce);
}

/** Runs a routine under a lock. */
export async function workUsing(actor: Actor): Promise<void> {
  const { world, draw, process, redlock, calls } = actor;
  const resources = drawResources(actor);
  const options = drawOptions(actor);
  const maxHold = draw.pick([options.ttl, 5 * options.ttl]);
  const length = draw.between(0, 3) * options.ttl;
  const failure = draw.chance(0.2) ? new Error("the routine failed") : undefined;
  const result = {};
  const invoked = world.now;
  let hold: Hold | undefined;
  let lost = false;
  let returned = false;
  const outcome = await calls.make(
    process,
    `using ${resources} ${JSON.stringify(options)}`,
    options.wait +
      3 * Math.min(options.timeout, options.ttl) +
      length +
      longestUpdate(options.ttl) +
      2 * options.timeout +
      200,
    ["LOCK_HELD", "NO_QUORUM", "LOCK_LOST"],
    () =>
      redlock.using(resources, { ...options, maxHold }, async (lock) => {
        hold = handLock(actor, lock, invoked, true).hold;
        await actor.sleep(length);
        await update(actor, lock);
        hold.releaseInvoked = world.now;
        lost = lock.signal.aborted;
        if (!lost) actor.locks.end(hold);
        returned = true;
        if (failure) throw failure;
        return result;
      }),
    (error) => error === failure,
  );
  if (hold) {
    hold.releaseReturned = world.now;
    boundRenewals(actor, hold, 0, options.backoff.min);
  } else if ("error" in outcome) judge(actor, resources, outcome.error);
  if (!returned) return;
  const right = failure
    ? "error" in outcome && outcome.error === failure
    : lost
      ? "error" in outcome && outcome.error instanceof LockLostError
      : "value" in outcome && outcome.value === result;
  if (!right) {
    world.violate(
      "the routine's outcome wins",
      `${process.name}: ${failure ? "threw" : lost ? "lost" : "returned"}, but using said ${JSON.stringify(outcome)}`,
    );
  }
  world.count(failure ? "using threw" : lost ? "using lost" : "using returned");
}

/** Takes the lock once, waiting as long as it takes: after the faults everybody must be served. */
export async function takeTurn(actor: Actor, bound: number): Promise<void> {
  const { world, process, redlock, calls, scenario, draw } = actor;
  const [resource] = scenario.resources;
  const invoked = world.now;
  const outcome = await calls.make(process, `turn ${resource}`, bound, [], () =>
    redlock.acquire(resource!, { ttl: 5_000, wait: 10 * bound, fencing: scenario.fencing }),
  );
  if ("error" in outcome) return;
  const held = handLock(actor, outcome.value, invoked, false);
  await actor.sleep(draw.between(1, 30));
  await giveBack(actor, held, 1_000);
}

function drawResources({ draw, scenario }: Actor): string[] {
  const { resources } = scenario;
  if (resources.length === 1 || draw.chance(0.3)) return [...resources];
  return [draw.pick(resources)];
}

/** Notes that a lock has been handed out. */
function handLock(actor: Actor, lock: Lock, invoked: number, listens: boolean): Held {
  const { resources, token: holder, fence } = lock;
  const nonce = nonceOf(lock.value);
  actor.world.count("granted");
  return hand(actor, lock, actor.locks, { resources, holder, nonce, invoked, fence }, listens);
}

/** A call that got no lock: whether it is told why. */
function judge(actor: Actor, [resource]: readonly string[], error: unknown): void {
  const held = error === null || error instanceof LockHeldError;
  actor.world.count(held ? "held" : error instanceof QuorumError ? "unavailable" : "aborted");
  judgeRefusal(actor, keyOf("redlock", "lock", resource!), error);
}

/** @returns how often it was extended by hand */
async function useLock(actor: Actor, lock: Lock, held: Held, timeout: number): Promise<number> {
  const { world, draw, process, calls } = actor;
  if (actor.scenario.lingering && draw.chance(0.5)) return linger(actor, held, timeout);
  let extensions = 0;
  let concurrent: Promise<unknown> | undefined;
  for (let steps = draw.integer(0, 4); steps > 0; steps -= 1) {
    await actor.sleep(draw.between(0, draw.chance(0.2) ? 1.5 : 0.4) * lock.ttl);
    const step = draw.fraction();
    if (step < 0.45) {
      const length = Math.floor(lock.ttl * draw.pick([1, 1, draw.between(0.1, 1), draw.between(1, 2)]));
      // A longer one right after a shorter one that is perhaps still on its way.
      const lengths = draw.chance(0.35) ? [length, 2 * actor.scenario.ttl] : [length];
      for (const each of lengths) {
        extensions += 1;
        const ttl = Math.min(Math.max(10, each), 2 * actor.scenario.ttl);
        const extension = extend(actor, held, ttl, timeout);
        if (draw.chance(0.3)) concurrent = extension;
        else await extension;
      }
    } else if (step < 0.6) {
      const outcome = await calls.make(process, "verify", timeout, ["NO_QUORUM"], () => lock.verify());
      if ("value" in outcome) world.count(outcome.value ? "verified" : "verified lost");
    } else if (step < 0.9) await update(actor, lock);
  }
  await concurrent;
  return extensions;
}

/** ms that {@link update} takes at most. */
function longestUpdate(ttl: number): number {
  return 2 * ttl + 120;
}

/** Reads, thinks, and writes what it read and one more. Who does not look at its validity is refused by the fence. */
async function update(actor: Actor, lock: Lock): Promise<void> {
  const { process, ledger, draw } = actor;
  const careless = draw.chance(0.3);
  if (lock.fence === undefined || (lock.remaining() <= 0 && !careless)) return;
  // Handles of one owner do not exclude each other, by fences no more than by the lock.
  if (lock.value !== lock.token) return;
  const [account] = lock.resources;
  const balance = await ledger.open(process, account!, lock.fence);
  if (balance === undefined) return;
  await actor.sleep(draw.between(0, careless ? 2 : 0.3) * lock.ttl);
  if (lock.remaining() > 0 || careless) await ledger.write(process, account!, lock.fence, balance + 1);
}
