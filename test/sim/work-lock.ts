import { keyOf } from "../../src/grant.ts";
import { LockHeldError, LockLostError, QuorumError } from "../../src/index.ts";
import type { Lock } from "../../src/lock.ts";
import { quorumOf } from "../../src/quorum.ts";
import { type Actor, drawOptions } from "./actor.ts";
import type { Hold } from "./holds.ts";

/** Takes a lock, does something with it, and gives it back, or not. */
export async function workLock(actor: Actor): Promise<void> {
  const { world, draw, process, redlock, calls, kept } = actor;
  const resources = drawResources(actor);
  const options = drawOptions(actor);
  const autoExtend = draw.chance(0.3);
  const token = draw.chance(0.08) ? draw.pick(["owner-1", "owner-2"]) : undefined;
  const abort = draw.chance(0.15) ? new AbortController() : undefined;
  if (abort) process.timer(draw.between(0, options.ttl), () => abort.abort(new Error("given up")));
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
  const lock = "value" in outcome ? outcome.value : undefined;
  if (!lock) {
    judgeRefusal(actor, resources, "value" in outcome ? null : outcome.error);
    return;
  }

  const hold = hand(actor, lock, invoked, draw.chance(0.5) || autoExtend);
  const plan = draw.fraction();
  if (plan < 0.08) kept.add(hold.nonce); // its holder forgets it
  const extensions = await useLock(actor, lock, hold, options.timeout);
  if (plan >= 0.08) await giveBack(actor, lock, hold, options.timeout);
  if (plan > 0.95) await giveBack(actor, lock, hold, options.timeout);
  boundRenewals(actor, hold, extensions, options.backoff.min);
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
    options.wait + 3 * Math.min(options.timeout, options.ttl) + length + 2 * options.timeout + 200,
    ["LOCK_HELD", "NO_QUORUM", "LOCK_LOST"],
    () =>
      redlock.using(resources, { ...options, maxHold }, async (lock) => {
        hold = hand(actor, lock, invoked, true);
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
  } else if ("error" in outcome) judgeRefusal(actor, resources, outcome.error);
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
  const hold = hand(actor, outcome.value, invoked, false);
  await actor.sleep(draw.between(1, 30));
  await giveBack(actor, outcome.value, hold, 1_000);
}

function drawResources({ draw, scenario }: Actor): string[] {
  const { resources } = scenario;
  if (resources.length === 1 || draw.chance(0.3)) return [...resources];
  return [draw.pick(resources)];
}

/** Notes that a lock has been handed out. */
function hand(actor: Actor, lock: Lock, invoked: number, listens: boolean): Hold {
  const { world, process, wire, locks, scenario } = actor;
  const { nonce } = lock.toJSON();
  if (lock.remaining() <= 0 && process.running) {
    world.violate("validity is honest", `${process.name} got ${lock.resources} with nothing left`);
  }
  const { granted } = wire.votes(nonce, "take");
  if (granted < quorumOf(scenario.endpoints)) {
    world.violate("a quorum decides", `${process.name} got ${lock.resources} from ${granted} endpoints`);
  }
  const { signal } = listens ? lock : { signal: undefined };
  const hold: Hold = {
    resources: lock.resources,
    holder: lock.token,
    nonce,
    process,
    remaining: () => lock.remaining(),
    told: signal && (() => signal.aborted),
    invoked,
    acquired: world.now,
    fence: lock.fence,
    ended: undefined,
    releaseInvoked: undefined,
    releaseReturned: undefined,
    released: undefined,
  };
  world.count("granted");
  locks.add(hold);
  return hold;
}

/** @returns how often it was extended by hand */
async function useLock(actor: Actor, lock: Lock, hold: Hold, timeout: number): Promise<number> {
  const { world, draw, process, calls } = actor;
  let extensions = 0;
  let concurrent: Promise<unknown> | undefined;
  for (let steps = draw.integer(0, 4); steps > 0; steps -= 1) {
    await actor.sleep(draw.between(0, draw.chance(0.2) ? 1.5 : 0.4) * lock.ttl);
    const step = draw.fraction();
    if (step < 0.45) {
      const ttl = draw.chance(0.5) ? lock.ttl : Math.max(10, Math.floor(lock.ttl * draw.between(0.5, 1.5)));
      extensions += 1;
      const extension = extend(actor, lock, hold, Math.min(ttl, 2 * actor.scenario.ttl), timeout);
      if (draw.chance(0.3)) concurrent = extension;
      else await extension;
    } else if (step < 0.6) {
      const outcome = await calls.make(process, "verify", timeout, ["NO_QUORUM"], () => lock.verify());
      if ("value" in outcome) world.count(outcome.value ? "verified" : "verified lost");
    } else if (step < 0.9) await update(actor, lock);
  }
  await concurrent;
  return extensions;
}

async function extend(actor: Actor, lock: Lock, hold: Hold, ttl: number, timeout: number): Promise<void> {
  const { world, process, calls } = actor;
  // A shorter one brings the end forward as soon as it is sent.
  world.scheduler.at(world.now, () => actor.locks.look(process));
  // Extensions wait for one another.
  const outcome = await calls.make(process, `extend ${ttl}`, 6 * timeout, ["LOCK_LOST", "NO_QUORUM"], () =>
    lock.extend(ttl),
  );
  actor.locks.look(process);
  if ("value" in outcome) {
    world.count("extended");
    // An owner's other handle may have given it back, and a third one taken it again.
    if (hold.ended !== undefined && hold.holder === hold.nonce) {
      world.violate("validity is honest", `${process.name} extended ${hold.resources} after its end`, [
        "a clock that goes on",
      ]);
    }
  } else world.count(outcome.error instanceof QuorumError ? "extend: no quorum" : "extend: lost");
}

/** Reads, thinks, and writes what it read and one more; as long as it believes that it may. */
async function update(actor: Actor, lock: Lock): Promise<void> {
  const { process, ledger, draw } = actor;
  if (lock.fence === undefined || lock.remaining() <= 0) return;
  const [account] = lock.resources;
  const balance = await ledger.open(process, account!, lock.fence);
  if (balance === undefined) return;
  await actor.sleep(draw.between(0, 0.3) * lock.ttl);
  if (lock.remaining() > 0) await ledger.write(process, account!, lock.fence, balance + 1);
}

async function giveBack(actor: Actor, lock: Lock, hold: Hold, timeout: number): Promise<void> {
  const { world, process, calls, locks, wire, scenario } = actor;
  const again = hold.releaseInvoked !== undefined;
  hold.releaseInvoked ??= world.now;
  const release = calls.make(process, "release", timeout, ["NO_QUORUM"], () => lock.release());
  locks.endAll(hold);
  const outcome = await release;
  const said = "value" in outcome ? outcome.value : undefined;
  world.count(said === undefined ? "release: no quorum" : said ? "released" : "release: gone");
  if (again) return;
  hold.releaseReturned = world.now;
  hold.released = said;
  const { granted, refused } = wire.votes(hold.nonce, "drop");
  const quorum = quorumOf(scenario.endpoints);
  const shown =
    said === true ? granted >= quorum : said === false ? refused > scenario.endpoints - quorum : true;
  if (!shown) {
    world.violate(
      "a quorum decides",
      `${process.name}: release said ${said} with ${granted} freed and ${refused} gone`,
    );
  }
}

/** Whether a refusal says what happened: contention where endpoints refused, an outage where they failed. */
function judgeRefusal(actor: Actor, resources: readonly string[], error: unknown): void {
  const { world, process, wire, scenario } = actor;
  const held = error === null || error instanceof LockHeldError;
  world.count(held ? "held" : error instanceof QuorumError ? "no quorum" : "aborted");
  if (!held && !(error instanceof QuorumError)) return;
  const nonce = wire.lastRound(process, keyOf("redlock", "lock", resources[0]!));
  if (nonce === undefined) {
    world.violate("refusals are true", `${process.name} asked nobody`);
    return;
  }
  const { refused } = wire.votes(nonce, "take");
  const veto = scenario.endpoints - quorumOf(scenario.endpoints) + 1;
  if (held === refused >= veto) return;
  world.violate(
    "refusals are true",
    `${process.name}: ${held ? "held" : "no quorum"} with ${refused} refusals of ${scenario.endpoints}`,
  );
}

/** Renewals come with pauses: one at half of a ttl, after a failure at least the backoff's least pause. */
function boundRenewals({ world, wire, process }: Actor, hold: Hold, byHand: number, pause: number): void {
  const sent = wire.renewals(hold.nonce);
  const held = (hold.ended ?? world.now) - hold.acquired;
  // Twice for scripts that an endpoint does not know yet, and for a client in between that repeats.
  const most = 4 * (byHand + 3) + (3 * held) / pause;
  if (sent <= most) return;
  world.violate("requests are bounded", `${process.name} sent ${sent} renewals in ${held.toFixed()} ms`);
}
