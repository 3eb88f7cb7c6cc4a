import type { Request } from "./request.ts";
import type { Server } from "./server.ts";

/** What a request acquires, extends or releases. */
export type Stored = Pick<Request, "keys" | "value" | "from" | "isMember">;

/** For how many ms of true time a value yet stands at a server, whatever the server replied; 0: it does not. */
export function standsFor(server: Server, { keys, value, from, isMember }: Stored): number {
  if (isMember) {
    // A member's score is its deadline, by the server's clock in ms.
    const deadline = Number(server.execute(["ZSCORE", keys[0]!, value]) ?? 0);
    return Math.max(0, deadline - server.time()) / server.rate;
  }
  const own = value.slice(from - 1);
  const isThere = keys.every((key) => {
    const found = server.execute(["GET", key]);
    return typeof found === "string" && found.slice(from - 1) === own;
  });
  if (!isThere) return 0;
  const ends = keys.map((key) => Number(server.execute(["PTTL", key])));
  return Math.max(0, Math.min(...ends)) / server.rate;
}

/** What an operator's request meets at a server. */
export interface Snapshot {
  /** undefined: there is nothing. */
  readonly text: string | undefined;
  /** ms until it expires, by the server's clock. */
  readonly remaining: number;
  /** The counter beside it: of fences, or of runs; "": there is none. */
  readonly counter: string;
}

/** What a request to inspect or free meets; undefined for other requests. */
export function snapshotFor(server: Server, { operation, keys, counter }: Request): Snapshot | undefined {
  if (operation !== "free" && counter === undefined) return undefined;
  const read = (key: string | undefined) =>
    key === undefined ? undefined : ((server.execute(["GET", key]) ?? undefined) as string | undefined);
  const remaining = Math.max(0, Number(server.execute(["PTTL", keys[0]!])));
  return { text: read(keys[0]), remaining, counter: read(counter) ?? "" };
}
