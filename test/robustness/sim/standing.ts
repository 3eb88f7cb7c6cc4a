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
