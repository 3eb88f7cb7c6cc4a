import { type Found, type Reply, type Twin, type TwinCall, timeOf, whole } from "./twin.ts";

/** The twin of `queueScript`, which says what it does. */
export const queueTwin: Twin = {
  sha: {
    redis: "b9712e434ff1802d6f53fd02fc911428fc4e460a",
    upstash: "24a2bb704c4361312b2af8234aaffc8ae7ed6b71",
  },
  run,
};

function run(twin: TwinCall): Reply {
  const { call, keys, args } = twin;
  const [value, ticket] = args as [string, string];
  const [expiry, ttl] = [whole(args[2]!), whole(args[3]!)];
  const [holder, queued, ...tombstones] = call("MGET", ...keys) as Found;
  const queue = queued ?? "";
  const [grace, channel] = args.slice(5);
  if (ttl > 0) {
    if (holder === value) return [value, 0, 1];
    if (tombstones.some((found) => found !== null)) return [0, 0, 1];
    if (holder === null && queue === "") {
      call("SET", keys[0]!, value, "PX", ttl);
      return [value, 0, 2];
    }
  }
  if (ticket === "") return release(twin, holder ?? null, tombstones[0] ?? null, queue);
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
  if (ttl > 0 && holder === null && ahead > 0 && grace !== undefined) {
    const first = live.find((waiting) => waiting.ticket === firstOf(live))!;
    first.until = Math.min(first.until, now + whole(grace));
  }
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
  if (holder === value) call("DEL", keys[0]!);
  const told = holder === null || holder === value ? tell(call, channel, firstOf(live)) : 0;
  if (holder !== value) return [0, ahead, calls + 1 + told];
  return [value, 0, calls + 2 + told];
}

/** The release of a holder with wake-ups. */
function release(
  { call, keys, args }: TwinCall,
  holder: string | null,
  tombstone: string | null,
  queue: string,
): Reply {
  const [value, , expiry] = args as [string, string, string];
  if (tombstone === "freed") return [value, 0, 1];
  const isHeld = holder === value;
  const calls = keys.length > 2 ? 2 : 1;
  if (keys.length > 2) call("SET", keys[2]!, isHeld ? "freed" : 1, "PX", expiry);
  if (isHeld) call("DEL", keys[0]!);
  const told = isHeld || holder === null ? tell(call, args[6], firstOf(ticketsOf(queue))) : 0;
  return [isHeld ? value : 0, 0, calls + Number(isHeld) + told];
}

/** Names the first ticket to those that wait, and returns how many commands that took. */
function tell(call: TwinCall["call"], channel: string | undefined, first: string | undefined): number {
  if (channel === undefined || first === undefined) return 0;
  call("PUBLISH", channel, `0:${first}`);
  return 1;
}

const firstOf = (queue: readonly Waiting[]): string | undefined =>
  queue.map(({ ticket }) => ticket).sort()[0];

interface Waiting {
  readonly ticket: string;
  until: number;
}

const ticketsOf = (queue: string): Waiting[] =>
  [...queue.matchAll(/([A-Za-z0-9]+):(\d+)/g)].map(([, ticket, until]) => ({
    ticket: ticket!,
    until: whole(until!),
  }));

/** The live tickets of others, how many of them are before this one, and until when this one is queued. */
function readQueue(
  queue: string,
  ticket: string,
  now: number,
): { live: Waiting[]; ahead: number; own: number } {
  const all = ticketsOf(queue);
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
