import { lockIdOf, type Request } from "./request.ts";
import type { World } from "./world.ts";

// What a request about a run's key and locks does at one endpoint, by what stood there before and after.

/** The values at the keys of a record and locks, in this order. */
type Contents = readonly (string | null)[];

/** What stands at the keys of a run with locks; nothing for other requests. `read`: the value at a key. */
export function contentsOf({ keys, locks }: Request, read: (key: string) => string | null): Contents {
  return locks ? [...keys, ...locks.keys].map(read) : [];
}

/** One execution of a request about a run's key and locks. */
interface ClaimExecution {
  /** The name of the endpoint. */
  readonly where: string;
  readonly granted: boolean;
  readonly before: Contents;
  readonly after: Contents;
}

/** Checks one execution of a request about a run's key and locks. Others are let pass. */
export function checkClaim(
  world: Pick<World, "check">,
  { locks, value, next }: Request,
  { where, granted, before, after }: ClaimExecution,
): void {
  if (!locks) return;
  const own = [value, ...locks.keys.map(() => locks.value)];
  const what = () => `${where}: ${JSON.stringify(before)} became ${JSON.stringify(after)} for ${own}`;
  if (locks.operation === "acquire") {
    // An earlier execution may have written some of them.
    const isFree = before.every((text, index) => text === null || text === own[index]);
    world.check("all or none", isSame(after, granted ? own : before) && (!granted || isFree), what);
    return;
  }
  if (locks.operation === "extend") {
    world.check("all or none", isSame(after, before) && granted === isSame(before, own), what);
    return;
  }
  const expected = before.map((text, index) =>
    text !== own[index] ? text : index === 0 && next ? next : null,
  );
  world.check("each half by itself", isSame(after, expected), what);
}

function isSame(one: Contents, other: Contents): boolean {
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
  const what = () => `${name} has stored its result, and ${stands} endpoints have the ${lockIdOf(token)}`;
  world.check("a run frees its lock", 2 * stands <= world.servers.length, what);
}
