import type { World } from "../world/world.ts";
import type { Request } from "./request.ts";

// What a request about a cell does at one endpoint, by what stood there before and after.

/** The values at the keys of a cell, and its fence counters. */
export interface Contents {
  readonly values: readonly (string | null)[];
  readonly counters: readonly (string | null)[];
}

/** What stands at the keys of a cell; undefined for other requests. `read`: the value at a key. */
export function contentsOf(
  { keys, next, counters = [] }: Request,
  read: (key: string) => string | null,
): Contents | undefined {
  return next && { values: keys.map(read), counters: counters.map(read) };
}

/** One execution of a request about a cell. */
interface CellExecution {
  /** The name of the endpoint. */
  readonly where: string;
  readonly granted: boolean;
  readonly before: Contents | undefined;
  readonly after: Contents | undefined;
}

/** Checks one execution of a request about a cell. Others are let pass. */
export function checkCell(
  world: Pick<World, "check">,
  { operation, own, next, ttl, tombstone }: Request,
  { where, granted, before, after }: CellExecution,
): void {
  if (!before || !after || !next) return;
  const what = () => `${where}: ${JSON.stringify(before)} became ${JSON.stringify(after)} for ${own}`;
  const { values } = before;
  if (operation === "end") {
    const expected = values.map((text, index) => (text === own[index] ? next[index] || null : text));
    world.check("each key by itself", isSame(after.values, expected), what);
    return;
  }
  const keeps = operation === "keep";
  // A first execution may have written what follows.
  const isFree = values.every(
    (text, index) => text === own[index] || text === next[index] || (text === null && !keeps),
  );
  // What is kept is refused for its tombstone only. A native command refuses what it has written.
  const isRight = granted ? isFree : !(keeps && isSame(values, own)) || tombstone !== undefined;
  const isWritten = isSame(after.values, !granted || ttl === 0 ? values : next);
  const isDrawn = granted || isSame(after.counters, before.counters);
  world.check("all or none", isRight && isWritten && isDrawn, what);
}

function isSame(one: readonly (string | null)[], other: readonly (string | null)[]): boolean {
  return one.every((text, index) => text === other[index]);
}

/** Checks that a run that has stored its result has freed its locks. */
export function checkLocksFreed(
  world: World,
  name: string,
  token: string,
  standing: readonly number[],
): void {
  const stands = standing.filter((ms) => ms > 0).length;
  const what = () => `${name} has stored its result, and ${stands} endpoints have the locks of ${token}`;
  world.check("a run frees its lock", 2 * stands <= world.servers.length, what);
}
