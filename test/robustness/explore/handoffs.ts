import type { Lock } from "../../../src/index.ts";
import { handoff, type LockJSON, type ResumeOptions, resume } from "../../../src/index.ts";
import { recordHold } from "../sim/handles.ts";
import { nonceOf } from "../sim/request.ts";
import type { Actor, Held } from "./actor.ts";

// A lock that goes from one client to another, by a letter.

/** Hands a lock over, by a letter to each of these clients. Where there is no lock, the letters are empty. */
export async function sendLock(actor: Actor, held: Held<Lock> | undefined, ...to: number[]): Promise<void> {
  const post = (text: string) => {
    for (const client of to) actor.post(client, text);
  };
  if (!held) return post("");
  const json = await handoff(held.handle);
  held.hold.releaseInvoked = actor.stage.world.now;
  held.holds.end(held.hold);
  // Where the receiver is too late, nobody releases it.
  actor.leave(held);
  post(JSON.stringify(json));
}

/** Receives a lock; undefined: there is none, another client has resumed it, or its validity has ended on the way. */
export async function receiveLock(actor: Actor, options?: ResumeOptions): Promise<Held<Lock> | undefined> {
  const text = await actor.receive();
  if (text === "") return undefined;
  const json = JSON.parse(text) as LockJSON;
  const invoked = actor.stage.world.moment();
  const lock = await actor.call({
    what: "resume",
    bound: 6 * 1_000,
    codes: ["LOCK_LOST", "NO_QUORUM"],
    run: () => resume(actor.redlock, json, options),
  });
  if (!lock || lock.remaining() <= 0) return undefined;
  const nonce = nonceOf(lock.value);
  const earlier = [...json.earlier, json.nonce].filter((other) => other !== nonce);
  // Two clients that have the same nonce are two holders all the same.
  const holder = `${nonce} at ${actor.client.name}`;
  const holds = actor.stage.shared.locks;
  const known = { handle: lock, holds, resources: json.resources, nonce, earlier, holder, invoked };
  return actor.got(lock, recordHold(actor.simulated, { ...known, fence: lock.fence, listens: true }));
}
