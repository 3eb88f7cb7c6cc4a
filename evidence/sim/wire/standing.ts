import type { Server } from "../world/server.ts";
import type { Request } from "./request.ts";

/** What a request acquires, extends or releases. */
export type Stored = Pick<Request, "keys" | "value" | "own" | "isMember">;

/**
 * For how many ms of true time a value yet stands at a server, whatever the server replied; 0: it does not.
 *
 * @param at the keys that count. Default: all
 */
export function standsFor(server: Server, { keys, value, own, isMember }: Stored, at = keys): number {
  if (isMember) {
    // A member's score is its deadline, by the server's clock in ms.
    const deadline = Number(server.execute(["ZSCORE", keys[0]!, value]) ?? 0);
    return Math.max(0, deadline - server.time()) / server.rate;
  }
  const isThere = at.every((key) => server.execute(["GET", key]) === own[keys.indexOf(key)]);
  if (!isThere) return 0;
  const ends = at.map((key) => Number(server.execute(["PTTL", key])));
  return Math.max(0, Math.min(...ends)) / server.rate;
}

/** What an operator's request meets at a server. */
export interface Snapshot {
  /** undefined: there is nothing. */
  readonly text: string | undefined;
  /** The counter beside it: of fences, or of runs; "": there is none. */
  readonly counter: string;
}

/** What a request to inspect or free meets; undefined for other requests. */
export function snapshotFor(server: Server, { operation, keys, counter }: Request): Snapshot | undefined {
  if (operation !== "free" && counter === undefined) return undefined;
  const read = (key: string | undefined) =>
    key === undefined ? undefined : ((server.execute(["GET", key]) ?? undefined) as string | undefined);
  return { text: read(keys[0]), counter: read(counter) ?? "" };
}
