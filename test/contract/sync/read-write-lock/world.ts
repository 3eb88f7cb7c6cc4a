import { ReadWriteLock, type SyncOptions } from "../../../../src/sync/index.ts";
import { memberScript } from "../../../../src/sync/internal/member.lua.ts";
import { type VirtualClient, watch } from "../../../support/virtual-client.ts";
import { type SyncWorld, syncWorld } from "../../../support/virtual-sync.ts";

// Readers and writers of the lock `r` in virtual time.

/** Endpoints that know the script of readers and writers. */
export const newWorld = (options: Parameters<typeof syncWorld>[1] = {}) => syncWorld([memberScript], options);
export const lockOf = ({ redlock }: VirtualClient, options: SyncOptions = {}) =>
  new ReadWriteLock(redlock, "r", { ttl: 20_000, ...options });

/** By endpoint: how many hold it. */
export const holdsIn = ({ each }: Pick<SyncWorld, "each">) => each("ZCARD", "read-write", "r");
/** By endpoint: how many writers are announced. */
export const announcedIn = ({ each }: Pick<SyncWorld, "each">) => each("ZCARD", "writers", "r");
export const nowhere = [0, 0, 0];
/** ms until the tombstones of an endpoint expire. */
export const voidsIn = ({ ttls }: SyncWorld, index = 0) =>
  Object.entries(ttls(index)).flatMap(([key, ttl]) => (key.startsWith("redlock:void:{r}:") ? ttl : []));

/** A world with a reader, and a writer that has been refused once. */
export async function withWaitingWriter(options: SyncOptions = {}, signal?: AbortSignal) {
  const world = newWorld();
  const reading = await lockOf(world.client()).acquireRead();
  const writer = world.client();
  const writing = watch(lockOf(writer, options).acquireWrite({ signal }));
  await world.runtime.advance(0);
  return { ...world, reading, writer, writing };
}
