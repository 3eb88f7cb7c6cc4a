import { handoff, type LockJSON, resume } from "../../../src/handoff/index.ts";
import { type Lock, QuorumError } from "../../../src/index.ts";
import type { Actor } from "./actor.ts";
import { extend, type HeldHandle, recordLock, release } from "./handles.ts";

/** A lock that an actor holds. */
export interface HeldLock extends HeldHandle<Lock> {
  /** The timeout of the holder's requests, in ms. */
  readonly timeout: number;
}

/** Hands a lock off to another process, which extends, uses and releases it. */
export async function handOff(actor: Actor, held: HeldLock): Promise<void> {
  const { world, draw, process, calls, locks, kept } = actor;
  const { handle: lock, hold, timeout } = held;
  if (actor.scenario.lingering && draw.chance(0.6)) {
    // It may be executed after the receiver's extension.
    await extend(actor, held, Math.max(10, Math.floor(draw.between(0.3, 0.6) * lock.ttl)), timeout);
  }
  // The lock stands for as long as its giver could have relied on it.
  const until = world.now + lock.remaining() / process.rate;
  const handed = await calls.make(process, {
    what: "handoff",
    // It waits for requests under way.
    bound: 4 * timeout,
    // If its call had a deadline, it is extended to its whole ttl first.
    codes: ["LOCK_LOST", "NO_QUORUM"],
    run: () => {
      // The handle ends at once.
      const handing = handoff(lock);
      locks.release(hold);
      return handing;
    },
  });
  // A lock that is lost is released like every other.
  if ("error" in handed) return release(actor, held, timeout);
  // An endpoint that misses what puts another nonce in its place keeps it until its ttl.
  kept.add(hold.nonce);
  if (actor.scenario.handingOn) await checkHandedOver(actor, held);
  const message = { json: handed.value, until, held };
  // A queue delivers at least once: sometimes twice, to two processes or to one, at once or later.
  const isDoubled = draw.chance(0.4);
  if (isDoubled) world.count("handed off twice");
  const later = actor.sleep(draw.between(0, draw.pick([0, 0.2, 2]) * actor.scenario.ttl));
  const freed = world.freed.size;
  const deliveries = [deliver(actor, message)];
  if (isDoubled) deliveries.push(later.then(() => deliver(actor, message)));
  const outcomes = await Promise.all(deliveries);
  const isLost = outcomes.every((outcome) => outcome === "refused");
  // Two processes may have taken a part each.
  if (isDoubled && isLost) world.count("handed off to nobody");
  if (isDoubled || world.freed.has(hold.nonce) || world.freed.size > freed) return;
  world.check("holds survive", !isLost, () => `${lock.resources} was handed off, and nobody could resume it`);
}

/** A lock on its way, and what the giver knows of it. */
interface LockMessage {
  readonly json: LockJSON;
  /** Until when it stands in any case. */
  readonly until: number;
  readonly held: HeldLock;
}

/** Delivers a lock to a process, which resumes, extends, uses and releases it. Where no quorum answers, once more. */
async function deliver(actor: Actor, message: LockMessage): Promise<"held" | "refused" | "failed"> {
  const { draw } = actor;
  for (let tries = 0; tries < 3; tries += 1) {
    const received = await receive(actor, draw.pick(actor.actors), message);
    // What an earlier try has left may refuse this one.
    if (received === "refused") return tries === 0 ? "refused" : "failed";
    if (received === "none") return "failed";
    if (received !== "again") {
      await useReceived(received);
      return "held";
    }
    actor.world.count("handed off again");
    await actor.sleep(draw.between(0, 0.5) * actor.scenario.ttl);
  }
  return "failed";
}

/** A lock that another process has resumed. */
interface ReceivedLock extends HeldLock {
  readonly receiver: Actor;
}

/** Resumes a lock. */
async function receive(
  { world, draw, scenario }: Actor,
  receiver: Actor,
  { json, until, held }: LockMessage,
): Promise<ReceivedLock | "refused" | "none" | "again"> {
  const { process, calls, redlock } = receiver;
  const { timeout, hold } = held;
  if (!process.running) return "none";
  const autoExtend = scenario.handingOn && draw.chance(0.5);
  const invoked = world.now;
  const options = { timeout, autoExtend, maxHold: 3 * scenario.ttl };
  const outcome = await calls.make(process, {
    counted: "resume",
    what: `resume ${json.resources}`,
    // Two requests to each endpoint, then two that undo them.
    bound: 4 * timeout,
    codes: ["LOCK_LOST", "NO_QUORUM"],
    run: () => resume(redlock, json, options),
  });
  if ("error" in outcome) {
    if (outcome.error instanceof QuorumError) return "again";
    return world.now < until ? "refused" : "none";
  }
  world.count("handed off");
  const lock = outcome.value;
  if (lock.remaining() <= 0) return "none";
  const { origin, note } = hold;
  const received = { handle: lock, invoked, origin, note, listens: true };
  return { ...recordLock(receiver, received), timeout, receiver };
}

/** Uses a lock that was received, then releases it or hands it on. */
async function useReceived(received: ReceivedLock): Promise<void> {
  const { receiver, timeout } = received;
  const { world, draw, scenario } = receiver;
  if (draw.chance(0.7)) await extend(receiver, received, 2 * scenario.ttl, timeout);
  await receiver.sleep(draw.between(0, 1.5) * scenario.ttl);
  if (scenario.handingOn && draw.chance(0.4)) {
    world.count("handed on");
    await handOff(receiver, received);
    return;
  }
  await release(receiver, received, timeout);
}

/** The giver's handle has ended: it relies on nothing, and sends nothing. */
async function checkHandedOver(actor: Actor, { handle: lock, hold, timeout }: HeldLock): Promise<void> {
  const { world, process, calls, wire } = actor;
  const sent = wire.releasesSent(hold.nonce);
  const released = await calls.make(process, {
    what: "release what was handed over",
    bound: timeout,
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
