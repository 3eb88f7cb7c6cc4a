import { LockHeldError, QuorumError } from "../../../src/index.ts";
import { quorumOf } from "../../../src/quorum/tally.ts";
import type { Hold as Handle } from "../../../src/sync/index.ts";
import type { Actor } from "./actor.ts";
import { type Hold, type Holds, newHold } from "./holds.ts";

// What is done with the handle of something held, and what of it must be true.

/** Something held, as its holder sees it, and what is known of it. */
export interface Held {
  /** What locks and the handles of synchronizers have in common. */
  readonly handle: Omit<Handle, keyof AsyncDisposable>;
  readonly hold: Hold;
  /** Where it stands among others. */
  readonly holds: Holds;
}

/** Notes that something has been handed out that its holder may rely on for a while. */
export function hand(
  actor: Actor,
  handle: Held["handle"],
  holds: Holds,
  grant: Pick<Hold, "resources" | "nonce" | "invoked"> & Partial<Pick<Hold, "holder" | "fence" | "group">>,
  listens: boolean,
): Held {
  const { world, process, wire, scenario } = actor;
  const { resources, nonce } = grant;
  if (handle.remaining() <= 0 && process.running) {
    world.violate("validity is honest", `${process.name} got ${resources} with nothing left`);
  }
  const { granted } = wire.takes(nonce);
  if (granted < quorumOf(scenario.endpoints)) {
    world.violate("a quorum decides", `${process.name} got ${resources} from ${granted} endpoints`);
  }
  const { signal } = listens ? handle : { signal: undefined };
  const remaining = () => handle.remaining();
  const told = signal && (() => signal.aborted);
  const hold = newHold({ ...grant, process, remaining, told, acquired: world.now });
  holds.add(hold);
  return { handle, hold, holds };
}

/**
 * Holds it for a while: extends it, asks after it, or only waits.
 *
 * @returns how often it was extended by hand
 */
export async function useHandle(actor: Actor, held: Held, timeout: number): Promise<number> {
  const { world, draw, process, calls, scenario } = actor;
  const { handle } = held;
  if (scenario.lingering && draw.chance(0.5)) return linger(actor, held, timeout);
  let extensions = 0;
  let concurrent: Promise<unknown> | undefined;
  if (draw.chance(0.2)) {
    // Before an execution of the take that comes late.
    extensions += 1;
    await extend(actor, held, 2 * scenario.ttl, timeout);
  }
  for (let steps = draw.integer(0, 3); steps > 0; steps -= 1) {
    await actor.sleep(draw.between(0, draw.chance(0.2) ? 1.5 : 0.4) * handle.ttl);
    const step = draw.fraction();
    if (step < 0.5) {
      extensions += 1;
      const length = Math.floor(handle.ttl * draw.pick([1, 1, draw.between(0.1, 1), draw.between(1, 2)]));
      const ttl = Math.min(Math.max(10, length), 2 * scenario.ttl);
      const extension = extend(actor, held, ttl, timeout);
      if (draw.chance(0.3)) concurrent = extension;
      else await extension;
    } else if (step < 0.7) {
      const outcome = await calls.make(process, "verify", timeout, ["NO_QUORUM"], () => handle.verify());
      if ("value" in outcome) world.count(outcome.value ? "verified" : "verified lost");
    }
  }
  await concurrent;
  return extensions;
}

/** Shortens it, then lengthens it, and relies on that to the end. */
export async function linger(actor: Actor, held: Held, timeout: number): Promise<number> {
  const { draw, scenario } = actor;
  const longest = 2 * scenario.ttl;
  const short = Math.max(10, Math.floor(draw.between(0.3, 0.6) * held.handle.ttl));
  const shortened = extend(actor, held, short, timeout);
  if (draw.chance(0.5)) await shortened;
  await extend(actor, held, longest, timeout);
  await shortened;
  await actor.sleep(0.8 * longest);
  return 2;
}

/** Extends it by hand. */
export async function extend(
  actor: Actor,
  { handle, hold, holds }: Held,
  ttl: number,
  timeout: number,
): Promise<void> {
  const { world, process, calls } = actor;
  const left = handle.remaining();
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
  world.scheduler.at(world.now, () => holds.look(process));
  // Extensions wait for one another.
  const outcome = await calls.make(process, `extend ${ttl}`, 6 * timeout, ["LOCK_LOST", "NO_QUORUM"], () =>
    handle.extend(ttl),
  );
  extensions.underWay -= 1;
  holds.look(process);
  if ("value" in outcome) {
    world.count("extended");
    // An owner's other handle may have given it back, and a third one taken it again.
    // And a clock that was set back while the other one stood still takes back an end.
    const isOver = hold.ended !== undefined && world.keeps("a clock that goes on");
    if (isOver && !holds.isReleasedBeside(hold)) {
      world.violate("validity is honest", `${process.name} extended ${hold.resources} after its end`);
    }
    return;
  }
  const lost = !(outcome.error instanceof QuorumError);
  world.count(lost ? "extend: lost" : "extend: no quorum");
  // A lock of an owner may have been given back by another handle of his.
  const gone = lost && String(outcome.error).includes("gone from a quorum");
  const isAlone = hold.releaseInvoked === undefined && !holds.isReleasedBeside(hold);
  if (gone && left > 0 && isAlone) {
    world.violate("holds survive", `${process.name} lost ${hold.resources} with ${left.toFixed()} ms left`);
  }
  const askedNobody = world.now === invoked && traffic() === before;
  if (lost && alone && askedNobody && left > 0 && hold.releaseInvoked === undefined) {
    world.violate("refusals are true", `${process.name} may not extend, with ${left.toFixed()} ms left`);
  }
}

/** Releases it, perhaps once more, and looks whether what the release says is so. */
export async function giveBack(actor: Actor, { handle, hold, holds }: Held, timeout: number): Promise<void> {
  const { world, process, calls, wire, scenario } = actor;
  const again = hold.releaseInvoked !== undefined;
  hold.releaseInvoked ??= world.now;
  const release = calls.make(process, "release", timeout, ["NO_QUORUM"], () => handle.release());
  const returned = holds.endAll(hold);
  const outcome = await release;
  returned();
  const said = "value" in outcome ? outcome.value : undefined;
  world.count(said === undefined ? "release: no quorum" : said ? "released" : "release: gone");
  const everywhere = scenario.endpoints;
  const { freed, gone } = wire.drops(hold.nonce);
  if (again) return;
  hold.releaseReturned = world.now;
  hold.released = said;
  const quorum = quorumOf(scenario.endpoints);
  if (said === false && wire.freed(hold.nonce) >= quorum) {
    const remembered = ["kept memory", "bounded drift"] as const;
    const what = `${process.name}: release freed a quorum, and said that it was gone`;
    world.violate("a quorum decides", what, remembered);
  }
  const shown = said === true ? freed >= quorum : said === false ? gone > everywhere - quorum : true;
  if (!shown) {
    world.violate(
      "a quorum decides",
      `${process.name}: release said ${said} with ${freed} freed and ${gone} gone`,
    );
  }
}

/**
 * Looks whether a refusal says what happened: contention where endpoints refused, an outage where they failed.
 *
 * @param key what the last round was about
 */
export function judgeRefusal({ world, process, wire, scenario }: Actor, key: string, error: unknown): void {
  const held = error === null || error instanceof LockHeldError;
  if (!held && !(error instanceof QuorumError)) return;
  const nonce = wire.lastRound(process, key);
  if (nonce === undefined) {
    world.violate("refusals are true", `${process.name} asked nobody`);
    return;
  }
  const { refused } = wire.takes(nonce);
  const veto = scenario.endpoints - quorumOf(scenario.endpoints) + 1;
  if (held === refused >= veto) return;
  world.violate(
    "refusals are true",
    `${process.name}: ${held ? "held" : "unavailable"} with ${refused} refusals of ${scenario.endpoints}`,
  );
}

/** Renewals come with pauses: one at half of a ttl, after a failure at least the backoff's least pause. */
export function boundRenewals(
  { world, wire, process }: Actor,
  hold: Hold,
  byHand: number,
  pause: number,
): void {
  const sent = wire.renewals(hold.nonce);
  const held = (hold.ended ?? world.now) - hold.acquired;
  // Twice for scripts that an endpoint does not know yet, and for a client in between that repeats.
  const most = 4 * (byHand + 3) + (3 * held) / pause;
  if (sent <= most) return;
  world.violate("requests are bounded", `${process.name} sent ${sent} renewals in ${held.toFixed()} ms`);
}
