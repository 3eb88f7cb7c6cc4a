import type { Lock } from "../../src/index.ts";
import type { Actor } from "./actor.ts";
import { type HeldHandle, recordHold } from "./handles.ts";
import type { Hold } from "./holds.ts";

/** A lock that an actor holds. */
export interface HeldLock extends HeldHandle {
  readonly lock: Lock;
  /** The timeout of the holder's requests, in ms. */
  readonly timeout: number;
}

/** When an acquire was called, and until when its lock may be held at most. */
export type Times = Pick<Hold, "invoked"> & Partial<Pick<Hold, "limit" | "origin" | "note">>;

/** Records a lock from now on. */
export function recordLock(actor: Actor, lock: Lock, times: Times, listens: boolean): HeldHandle {
  const { resources, token: nonce, fence } = lock;
  actor.world.count("granted");
  const holds = actor.locks;
  return recordHold(actor, { handle: lock, holds, resources, nonce, fence, listens, ...times });
}
