import { FairLock, type SyncOptions } from "../../../../src/sync/index.ts";
import { queueScript } from "../../../../src/sync/internal/queue.lua.ts";
import { type VirtualClient, watch } from "../../../support/virtual-client.ts";
import { type SyncWorld, syncWorld } from "../../../support/virtual-sync.ts";

// The fair lock `f` in virtual time.

/** Endpoints that know the script of the queue. */
export const newWorld = (options: Parameters<typeof syncWorld>[1] = {}) => syncWorld([queueScript], options);
export const lockOf = ({ redlock }: VirtualClient, options: SyncOptions = {}) =>
  new FairLock(redlock, "f", { ttl: 20_000, ...options });

/** By endpoint: 1 where it is held. */
export const locksIn = ({ each }: Pick<SyncWorld, "each">) => each("EXISTS", "fair", "f");
/** By endpoint: how many tickets are queued. */
export const queuesIn = ({ each }: Pick<SyncWorld, "each">) =>
  each("GET", "queue", "f").map((text) => (text === null ? 0 : String(text).split(",").length));
export const nowhere = [0, 0, 0];

/** A world whose lock is held, and so many waiters that came a ms after each other and do not reach `down`. */
export async function queueOf(count: number, options: SyncOptions = {}, down: readonly number[] = []) {
  const world = newWorld();
  const held = await lockOf(world.client()).acquire();
  const waiters = [];
  for (let index = 0; index < count; index += 1) {
    await world.runtime.advance(1);
    const own = world.client();
    for (const index of down) own.links[index]!.fate = () => "refused";
    waiters.push({ ...own, turn: watch(lockOf(own, { wait: 60_000, ...options }).acquire()) });
  }
  await world.runtime.advance(0);
  return { ...world, held, waiters };
}
