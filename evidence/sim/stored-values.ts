import { keyOf, parseKey } from "../../src/stored/index.ts";
import type { Server } from "./server.ts";

/** A value at a key of a server, or one of its members. */
export interface StoredValue {
  /** When it expires, in virtual ms; undefined: never. */
  readonly until: number | undefined;
  /** The fence that was drawn there with it. */
  readonly fence: number | undefined;
}

/** What a server has at a key, by its text: one value, or the members of a sorted set that have not expired. */
export function storedValues(server: Server, key: string, now: number): Map<string, StoredValue> {
  const type = String(server.execute(["TYPE", key]) ?? "");
  if (type === "string") {
    const text = String(server.execute(["GET", key]));
    const ttl = Number(server.execute(["PTTL", key]));
    const until = ttl < 0 ? undefined : now + ttl / server.rate;
    return new Map([[text, { until, fence: fenceAt(server, key) }]]);
  }
  if (type !== "zset") return new Map();
  const found = server.execute(["ZRANGE", key, "0", "-1", "WITHSCORES"]) as string[];
  const members = found.flatMap((member, at) => (at % 2 === 0 ? [[member, Number(found[at + 1])]] : []));
  const time = server.time();
  // A member's score is its deadline, by the server's clock in ms.
  const standing = (members as [string, number][]).filter(([, deadline]) => deadline > time);
  return new Map(
    standing.map(([member, deadline]) => [
      member,
      { until: now + (deadline - time) / server.rate, fence: undefined },
    ]),
  );
}

/** The counter of fences beside a lock. */
function fenceAt(server: Server, name: string): number | undefined {
  const key = parseKey(name);
  if (key?.kind !== "lock") return undefined;
  const counter = server.execute(["GET", keyOf(key.prefix, "fence", key.resource)]);
  return counter === null ? undefined : Number(counter);
}
