import { type Lock, LockHeldError, QuorumError } from "../../../src/index.ts";
import type { Hold as Handle } from "../../../src/sync/index.ts";
import type { Hold, Holds } from "../checks/holds.ts";
import { quorumOf, vetoOf } from "../field.ts";
import type { Actor } from "./actor.ts";
import type { Outcome } from "./calls.ts";

// Operations on the handle of a hold, with the checks of what each returns.

/** What locks and the handles of synchronizers have in common. */
export type CommonHandle = Omit<Handle, keyof AsyncDisposable>;

/** A handle together with what the simulator knows of its hold. */
export interface HeldHandle<H = CommonHandle> {
  readonly handle: H;
  readonly hold: Hold;
  /** The holds that it must not overlap with. */
  readonly holds: Holds;
}

/** A handle that the library has just returned. */
export interface AcquiredHandle<H = CommonHandle>
  extends Pick<Hold, "invoked">,
    Partial<Pick<Hold, "origin" | "note" | "limit">> {
  readonly handle: H;
  /** Whether the holder watches the handle's signal. */
  readonly listens: boolean;
}

/** The same, and what it is for. */
interface Grant
  extends AcquiredHandle,
    Pick<Hold, "resources" | "nonce">,
    Partial<Pick<Hold, "fence" | "group">> {
  /** The keys at which it stands. Default: those of its first request. */
  readonly keys?: readonly string[];
  readonly holds: Holds;
}

/** Records a hold from now on, and checks that a quorum granted it with validity left. */
export function recordHold(actor: Actor, acquired: Grant): HeldHandle {
  const { world, process, wire, scenario } = actor;
  const { handle, holds, listens, keys, ...grant } = acquired;
  const { resources, nonce } = grant;
  const { granted } = wire.acquireVotes(nonce);
  world.check(
    "a quorum decides",
    granted >= quorumOf(scenario.endpoints),
    () => `${process.name} got ${resources} from ${granted} endpoints`,
  );
  const { signal } = listens ? handle : { signal: undefined };
  const remaining = () => handle.remaining();
  const standing = () => wire.standing(nonce, keys);
  return { handle, hold: holds.grant({ ...grant, process, remaining, signal, standing }), holds };
}

/** Records a lock from now on. */
export function recordLock(actor: Actor, acquired: AcquiredHandle<Lock>): HeldHandle<Lock> {
  const { resources, token: nonce, fence } = acquired.handle;
  const { world, locks: holds } = actor;
  world.count("lock");
  return { ...recordHold(actor, { ...acquired, holds, resources, nonce, fence }), handle: acquired.handle };
}

/**
 * Holds for a while: extends, verifies, or only waits.
 *
 * @param update what the holder of a lock does besides. Such a holder often extends twice in a row
 * @returns how often the hold was extended by hand
 */
export async function useHandle(
  actor: Actor,
  held: HeldHandle,
  timeout: number,
  update?: () => Promise<void>,
): Promise<number> {
  const { draw, scenario } = actor;
  const { handle } = held;
  if (scenario.lingering && draw.chance(0.5)) return shortenThenExtend(actor, held, timeout);
  let extensions = 0;
  let concurrent: Promise<unknown> | undefined;
  if (!update && draw.chance(0.2)) {
    // At once, so that a late execution of the acquire request comes after it.
    extensions += 1;
    await extend(actor, held, 2 * scenario.ttl, timeout);
  }
  for (let steps = draw.integer(0, update ? 4 : 3); steps > 0; steps -= 1) {
    await actor.sleep(draw.between(0, draw.chance(0.2) ? 1.5 : 0.4) * handle.ttl);
    const step = draw.fraction();
    if (step < (update ? 0.45 : 0.5)) {
      const length = Math.floor(handle.ttl * draw.pick([1, 1, draw.between(0.1, 1), draw.between(1, 2)]));
      // Sometimes a longer one right after a shorter one that may still be on its way.
      const lengths = update && draw.chance(0.35) ? [length, 2 * scenario.ttl] : [length];
      for (const each of lengths) {
        extensions += 1;
        const extension = extend(actor, held, Math.min(Math.max(10, each), 2 * scenario.ttl), timeout);
        if (draw.chance(0.3)) concurrent = extension;
        else await extension;
      }
    } else if (step < (update ? 0.6 : 0.7)) await verify(actor, held, timeout);
    else if (update && step < 0.9) await update();
  }
  await concurrent;
  return extensions;
}

/** Asks whether it is still held, and checks the answer by what the endpoints had. */
export async function verify(actor: Actor, { handle, hold }: HeldHandle, timeout: number): Promise<void> {
  const { world, process, calls, wire } = actor;
  const asked = world.now;
  const outcome = await calls.make(process, {
    what: "verify",
    bound: timeout,
    codes: ["NO_QUORUM"],
    run: () => handle.verify(),
  });
  if ("error" in outcome) return;
  world.count(outcome.value ? "verified" : "verified lost");
  if (!outcome.value) return;
  const stood = wire.trailsOf(hold.nonce).filter(({ stoodAt = -Infinity }) => stoodAt >= asked).length;
  const remaining = handle.remaining();
  world.check(
    "verify is true",
    stood >= quorumOf(world.servers.length) && (remaining > 0 || !process.running),
    () => `${process.name}: ${hold.resources} stood at ${stood}, with ${remaining.toFixed(1)} ms left`,
  );
}

/** Shortens the hold, then lengthens it, and relies on the longer validity to the end. Two extensions. */
async function shortenThenExtend(actor: Actor, held: HeldHandle, timeout: number): Promise<number> {
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

/** An extension that has been sent, with what was known before. */
interface SentExtension {
  readonly invoked: number;
  /** ms of validity before. */
  readonly remainingBefore: number;
  /** Requests sent and executed in the whole world before. */
  readonly trafficBefore: string;
}

/** Extends a hold by hand, and checks the result. */
export async function extend(actor: Actor, held: HeldHandle, ttl: number, timeout: number): Promise<void> {
  const { world, process, calls } = actor;
  const { handle, hold, holds } = held;
  const { extensions } = hold;
  const sent: SentExtension = {
    remainingBefore: handle.remaining(),
    invoked: world.now,
    trafficBefore: trafficOf(actor),
  };
  // Automatic extensions ask for what was requested last.
  if (actor.wire.extensionsSent(hold.nonce) > 0) extensions.least = Math.min(extensions.least, handle.ttl);
  extensions.regrown ||= extensions.least < ttl;
  extensions.least = Math.min(extensions.least, ttl);
  // A shorter extension ends the validity earlier as soon as it is sent.
  world.scheduler.at(world.now, () => holds.recheck(process));
  const outcome = await calls.make(process, {
    what: `extend ${ttl}`,
    // Extensions of one handle wait for one another.
    bound: 6 * timeout,
    codes: ["LOCK_LOST", "NO_QUORUM"],
    run: () => handle.extend(ttl),
  });
  holds.recheck(process);
  if ("error" in outcome) checkFailedExtension(actor, held, sent, outcome.error);
  else checkExtension(actor, held);
}

function trafficOf({ world }: Actor): string {
  return `${world.counts.get("requests")} ${world.counts.get("executions")}`;
}

/** No extension succeeds after the end of its hold. */
function checkExtension({ world, process }: Actor, { hold }: HeldHandle): void {
  world.count("extended");
  // An end that a wrong clock has shown is taken back when that clock is set back while the other stands still.
  const what = () => `${process.name} extended ${hold.resources} after its end`;
  world.check("validity is honest", hold.ended === undefined, what, ["a clock that goes on"]);
}

/** An extension fails as lost only where the endpoints said so, and no hold is lost within its validity. */
function checkFailedExtension(
  actor: Actor,
  { hold }: HeldHandle,
  { invoked, remainingBefore, trafficBefore }: SentExtension,
  error: unknown,
): void {
  const { world, process } = actor;
  const lost = !(error instanceof QuorumError);
  world.count(lost ? "extend: lost" : "extend: unavailable");
  const gone = lost && String(error).includes("no quorum has its token");
  if (remainingBefore > 0 && !world.freed.has(hold.nonce)) {
    world.check(
      "holds survive",
      !gone,
      () => `${process.name} lost ${hold.resources} with ${remainingBefore.toFixed()} ms left`,
    );
  }
  const sentNothing = world.now === invoked && trafficOf(actor) === trafficBefore;
  if (lost && remainingBefore > 0) {
    world.check(
      "refusals are true",
      !sentNothing,
      () => `${process.name} may not extend, with ${remainingBefore.toFixed()} ms left`,
    );
  }
}

/** Releases a hold, perhaps for the second time, and checks that the result says what the endpoints did. */
export async function release(actor: Actor, held: HeldHandle, timeout: number): Promise<void> {
  const { world, process, calls, scenario } = actor;
  const { handle, hold, holds } = held;
  const invoked = world.now;
  const again = hold.releaseInvoked !== undefined;
  hold.releaseInvoked ??= world.now;
  const released = calls.make(process, {
    what: "release",
    bound: timeout,
    run: () => handle.release(),
  });
  holds.end(hold);
  const outcome: Outcome<boolean | undefined> = await released;
  const said = "value" in outcome ? outcome.value : undefined;
  if (scenario.oddEndpoint && said !== undefined) {
    // In a good network a decision takes 20 ms, and what follows 50 ms in all: not the timeout of the one that is silent.
    const took = world.now - invoked;
    world.check("calls end", took <= 60, () => `${process.name}: a release waited ${took.toFixed()} ms`);
  }
  world.count(said === undefined ? "release: unavailable" : said ? "released" : "release: gone");
  if (said === undefined) return;
  checkRelease(actor, hold.nonce, said, again);
}

/**
 * Checks the result of a release by what it removed at the endpoints, and by their replies.
 *
 * @param again whether an earlier release may have freed it
 */
function checkRelease(
  { world, process, wire, scenario }: Actor,
  nonce: string,
  said: boolean,
  again: boolean,
): void {
  const quorum = quorumOf(scenario.endpoints);
  const veto = vetoOf(scenario.endpoints);
  const { freed, gone, answeredFreed, answeredGone } = wire.releases(nonce);
  const what = () =>
    `${process.name}: release said ${said}; ${freed} freed it and ${gone} did not find it; ` +
    `${answeredFreed} replied that they freed it, ${answeredGone} that it was gone`;
  if (said) {
    world.check("a quorum decides", freed >= quorum && answeredFreed >= quorum, what);
  } else if (!again) {
    world.check("a quorum decides", gone >= veto && answeredGone >= veto, what);
    // Endpoints remember which members they freed. Of a plain value they do not, and a second execution finds it gone.
    const remembers = wire.isMember(nonce) ? [] : (["single execution"] as const);
    world.check("a quorum decides", freed < quorum, what, ["kept memory", "bounded drift", ...remembers]);
  }
}

/**
 * Checks the reason for which an acquire failed: contention must be reported exactly where enough endpoints refused.
 *
 * @param key the key of its rounds
 * @param invoked when it was called
 * @param error the error of the acquire; null: it was refused without an error
 */
export function checkRefusal(
  { world, process, wire, scenario }: Actor,
  key: string,
  invoked: number,
  error: unknown,
): void {
  const held = error === null || error instanceof LockHeldError;
  if (!held && !(error instanceof QuorumError)) return;
  // The wire does not see that something had no room, nor that its caller had given up an answer that came for others.
  if (!held && scenario.batches && error.votes.some(({ cause }) => cause?.kind === "timeout")) return;
  const nonce = wire.lastRound(process, key, invoked);
  world.check("refusals are true", nonce !== undefined || !held, () => `${process.name} claimed nothing`);
  // An endpoint that has refused a release must show first that it can do it, and may not answer.
  if (nonce === undefined) return;
  const { refused } = wire.acquireVotes(nonce);
  world.check(
    "refusals are true",
    held === refused >= vetoOf(scenario.endpoints),
    () =>
      `${process.name}: ${held ? "held" : "unavailable"} with ${refused} refusals of ${scenario.endpoints}`,
  );
}

/**
 * Checks that extensions pause: the automatic one comes at half of the ttl, a retry after at least the least backoff.
 *
 * @param byHand how often the holder extended by hand
 * @param options with which it was acquired
 */
export function checkExtensionRate(
  { world, wire, process }: Actor,
  hold: Hold,
  byHand: number,
  { ttl, backoff }: { readonly ttl: number; readonly backoff: { readonly min: number } },
): void {
  const sent = wire.extensionsSent(hold.nonce);
  const held = (hold.ended ?? world.now) - hold.acquired;
  // The drift allowance comes off the ttl, and timers fire early.
  // The deadline may have cut it to nearly nothing.
  const half = Math.max(1, 0.495 * Math.min(ttl, hold.extensions.least) - 2);
  // Twice for a script that the endpoint does not know yet.
  const most = 2 * (byHand + 3) + (2 * held) / Math.min(backoff.min, half);
  const what = () => `${process.name} sent ${sent} extensions in ${held.toFixed()} ms`;
  if (sent > 0) world.check("requests are bounded", sent <= most, what);
}
