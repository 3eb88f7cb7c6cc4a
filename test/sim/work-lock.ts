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
    options.wait +
      3 * Math.min(options.timeout, options.ttl) +
      length +
      longestUpdate(options.ttl) +
      2 * options.timeout +
      200,
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
  const { granted } = wire.takes(nonce);
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
    vague: false,
    extensions: { underWay: 0, least: Number.POSITIVE_INFINITY, regrown: false },
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
  if (actor.scenario.lingering && draw.chance(0.5)) {
    const longest = 2 * actor.scenario.ttl;
    const short = Math.max(10, Math.floor(draw.between(0.3, 0.6) * lock.ttl));
    const shortened = extend(actor, lock, hold, short, timeout);
    if (draw.chance(0.5)) await shortened;
    await extend(actor, lock, hold, longest, timeout);
    await shortened;
    await actor.sleep(0.8 * longest);
    return 2;
  }
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
        const extension = extend(actor, lock, hold, ttl, timeout);
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

async function extend(actor: Actor, lock: Lock, hold: Hold, ttl: number, timeout: number): Promise<void> {
  const { world, process, calls } = actor;
  const left = lock.remaining();
  const invoked = world.now;
  const traffic = () => `${world.counts.get("requests")} ${world.counts.get("executions")}`;
  const before = traffic();
  const { extensions } = hold;
  // One that waits for another may be refused by what the other one hears.
  const alone = extensions.underWay === 0;
  extensions.underWay += 1;
  extensions.regrown ||= extensions.least < ttl;
  extensions.least = Math.min(extensions.least, ttl);
  // A shorter one brings the end forward as soon as it is sent.
  world.scheduler.at(world.now, () => actor.locks.look(process));
  // Extensions wait for one another.
  const outcome = await calls.make(process, `extend ${ttl}`, 6 * timeout, ["LOCK_LOST", "NO_QUORUM"], () =>
    lock.extend(ttl),
  );
  extensions.underWay -= 1;
  actor.locks.look(process);
  if ("value" in outcome) {
    world.count("extended");
    // An owner's other handle may have given it back, and a third one taken it again.
    // And a clock that was set forward and back again has shown an end that was none.
    if (hold.ended !== undefined && hold.holder === hold.nonce && process.disturbances === 0) {
      world.violate("validity is honest", `${process.name} extended ${hold.resources} after its end`);
    }
    return;
  }
  const lost = !(outcome.error instanceof QuorumError);
  world.count(lost ? "extend: lost" : "extend: no quorum");
  const askedNobody = world.now === invoked && traffic() === before;
  if (lost && alone && askedNobody && left > 0 && hold.releaseInvoked === undefined) {
    world.violate("refusals are true", `${process.name} may not extend, with ${left.toFixed()} ms left`);
  }
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
  if (lock.toJSON().owner !== "") return;
  const [account] = lock.resources;
  const balance = await ledger.open(process, account!, lock.fence);
  if (balance === undefined) return;
  await actor.sleep(draw.between(0, careless ? 2 : 0.3) * lock.ttl);
  if (lock.remaining() > 0 || careless) await ledger.write(process, account!, lock.fence, balance + 1);
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
  const everywhere = scenario.endpoints;
  const takes = wire.takes(hold.nonce);
  const { freed, gone, answered } = wire.drops(hold.nonce);
  const settled = takes.granted + takes.refused === everywhere && answered === everywhere;
  if (settled && world.keeps("single execution")) locks.settle(hold);
  if (again) return;
  hold.releaseReturned = world.now;
  hold.released = said;
  const quorum = quorumOf(scenario.endpoints);
  const shown = said === true ? freed >= quorum : said === false ? gone > everywhere - quorum : true;
  if (!shown) {
    world.violate(
      "a quorum decides",
      `${process.name}: release said ${said} with ${freed} freed and ${gone} gone`,
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
  const { refused } = wire.takes(nonce);
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
