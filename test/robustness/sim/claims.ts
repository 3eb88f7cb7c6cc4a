import { lockIdOf, type Request } from "./request.ts";
import type { Server } from "./server.ts";
import type { World } from "./world.ts";

// What a request about a run's key and locks does at one endpoint, by what stood there before and after.

/** The values at the keys of a record and locks, in this order. */
type Contents = readonly (string | null)[];

/** What stands at the keys of a run with locks; nothing for other requests. */
export function contentsOf(server: Server, { keys, locks }: Request): Contents {
  if (!locks) return [];
  return [...keys, ...locks.keys].map((key) => server.execute(["GET", key]) as string | null);
}

/** Checks one execution of a request about a run's key and locks. Others are let pass. */
export function checkClaim(
  world: World,
  server: Server,
  request: Request,
  { granted, before }: { readonly granted: boolean; readonly before: Contents },
): void {
  const { locks, value, next } = request;
  if (!locks) return;
  const after = contentsOf(server, request);
  const own = [value, ...locks.keys.map(() => locks.value)];
  const what = () => `${server.name}: ${JSON.stringify(before)} became ${JSON.stringify(after)} for ${own}`;
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
