import type { ByteReply } from "../../../src/testing/commands/reply.ts";
import { type Found, type Twin, type TwinCall, timeOf, whole } from "./twin.ts";

/** The twin of `queueScript`, which says what it does. */
export const queueTwin: Twin = {
  sha: {
    redis: "82049624f7457696cc23a5643e5caab813c868cf",
    upstash: "ea80689e6327be13091ec98e9c37f89030ad3679",
  },
  run,
};

function run({ call, keys, args }: TwinCall): ByteReply {
  const [value, ticket] = args as [string, string];
  const [expiry, ttl] = [whole(args[2]!), whole(args[3]!)];
  const [holder, queued, ...tombstones] = call("MGET", ...keys) as Found;
  const queue = queued ?? "";
  if (ttl > 0) {
    if (holder === value) return [value, 0, 1];
    if (tombstones.some((found) => found !== null)) return [0, 0, 1];
    if (holder === null && queue === "") {
      call("SET", keys[0]!, value, "PX", ttl);
      return [value, 0, 2];
    }
  }
  const rollsBack = ttl === 0 && keys.length === 4;
  if (rollsBack) {
    call("SET", keys[3]!, 1, "PX", args[4]!);
    if (holder !== value) return [0, 0, 2];
    call("DEL", keys[0]!);
    if (tombstones[0] !== null) return [value, 0, 3];
  }
  const now = timeOf(call);
  const { live, ahead, own } = readQueue(queue, ticket, now);
  const acquires = ttl > 0 && holder === null && ahead === 0;
  if (rollsBack || (ttl > 0 && expiry > 0 && !acquires))
    live.push({ ticket, until: Math.max(own, now + expiry) });
  const calls = writeQueue({ call, key: keys[1]!, now }, queue, live);
  if (acquires) {
    call("SET", keys[0]!, value, "PX", ttl);
    return [value, 0, calls + 1];
  }
  if (rollsBack) return [value, 0, calls + 2];
  if (ttl > 0) return [0, ahead, calls];
  call("SET", keys[2]!, 1, "PX", expiry);
  if (holder !== value) return [0, ahead, calls + 1];
  call("DEL", keys[0]!);
  return [value, 0, calls + 2];
}

interface Waiting {
  readonly ticket: string;
  readonly until: number;
}

/** The live tickets of others, how many of them are before this one, and until when this one is queued. */
function readQueue(
  queue: string,
  ticket: string,
  now: number,
): { live: Waiting[]; ahead: number; own: number } {
  const all = [...queue.matchAll(/([A-Za-z0-9]+):(\d+)/g)].map(([, other, until]) => ({
    ticket: other!,
    until: whole(until!),
  }));
  const live = all.filter((waiting) => waiting.ticket !== ticket && waiting.until > now);
  const own = all.filter((waiting) => waiting.ticket === ticket).map(({ until }) => until);
  return { live, ahead: live.filter((waiting) => waiting.ticket < ticket).length, own: Math.max(0, ...own) };
}

/** Writes the queue where it has changed, and returns how many commands the script has called by then. */
function writeQueue(
  { call, key, now }: { readonly call: TwinCall["call"]; readonly key: string; readonly now: number },
  before: string,
  live: readonly Waiting[],
): number {
  const queue = live.map(({ ticket, until }) => `${ticket}:${until}`).join(",");
  if (queue === before) return 2;
  if (queue === "") call("DEL", key);
  else call("SET", key, queue, "PX", Math.max(...live.map(({ until }) => until)) - now);
  return 3;
}
