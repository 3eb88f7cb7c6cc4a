import type { Lock } from "../../../src/index.ts";
import { handoff, type LockJSON, resume } from "../../../src/index.ts";
import { nonceOf } from "../sim/request.ts";
import type { Actor, Held } from "./actor.ts";

// A lock that goes from one client to another, by a letter.

/** Hands a lock over. Where there is none, the letter is empty. */
export async function sendLock(actor: Actor, held: Held<Lock> | undefined, to: number): Promise<void> {
  if (!held) return actor.post(to, "");
  const json = await handoff(held.handle);
  held.hold.isOver = true;
  // Where the receiver is too late, nobody releases it.
  actor.leave(held);
  actor.post(to, JSON.stringify(json));
}

/** Receives a lock; undefined: there is none, or its validity has ended on the way. */
export async function receiveLock(actor: Actor): Promise<Held<Lock> | undefined> {
  const text = await actor.receive();
  if (text === "") return undefined;
  const json = JSON.parse(text) as LockJSON;
  const lock = resume(actor.redlock, json);
  // The letter may have taken longer than the lock was valid.
  if (lock.remaining() <= 0) return undefined;
  const nonce = nonceOf(json.nonce);
  return actor.hold(lock, json.resources, { holder: nonce, nonce, isResumed: true });
}
