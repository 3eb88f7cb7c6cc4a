import { type Found, type Reply, type Twin, type TwinCall, timeOf, whole } from "./twin.ts";

/** The twin of `queueScript`, which says what it does. */
export const queueTwin: Twin = {
  sha: {
    redis: "052b2e9a423559c5256b0c8d2c31d22f0549091a",
    upstash: "3f293f0cc59fd3b33118f9f8ae653e1a67f4bda9",
  },
  run,
};

function run(twin: TwinCall): readonly Reply[] {
  const { call, keys, args } = twin;
  const [value, ticket] = args as [string, string];
  const [expiry, ttl] = [whole(args[2]!), whole(args[3]!)];
  const [holder, queued, ...tombstones] = call("MGET", ...keys) as Found;
  const queue = queued ?? "";
  const channel = args[5];
  if (ttl > 0) {
    if (holder === value) return [value, 0];
    if (tombstones.some((found) => found !== null)) return [0, 0];
    if (holder === null && queue === "") {
      call("SET", keys[0]!, value, "PX", ttl, "GET");
      return [value, 0];
    }
  }
  if (ticket === "") return release(twin, holder ?? null, tombstones[0] ?? null, queue);
  const rollsBack = ttl === 0 && keys.length === 4;
  if (ttl === 0 && holder === value) call("DEL", keys[0]!);
  if (rollsBack) {
    call("SET", keys[3]!, 1, "PX", args[4]!);
    if (holder !== value) return [0, 0];
    if (tombstones[0] !== null) return [value, 0];
  }
  const now = timeOf(call);
  const { live, ahead, own } = readQueue(queue, ticket, now);
  const acquires = ttl > 0 && holder === null && ahead === 0;
  if (rollsBack || (ttl > 0 && expiry > 0 && !acquires))
    live.push({ ticket, until: Math.max(own, now + expiry) });
  writeQueue({ call, key: keys[1]!, now }, queue, live);
  if (acquires) {
    call("SET", keys[0]!, value, "PX", ttl, "GET");
    return [value, 0];
  }
  if (rollsBack) return [value, 0];
  if (ttl > 0) return [0, ahead];
  call("SET", keys[2]!, 1, "PX", expiry);
  if (holder === null || holder === value) tell(call, channel, live);
  return holder === value ? [value, 0] : [0, ahead];
}

/** The release of a holder with wake-ups. */
function release(
  { call, keys, args }: TwinCall,
  holder: string | null,
  tombstone: string | null,
  queue: string,
): readonly Reply[] {
  const [value, , expiry] = args as [string, string, string];
  if (tombstone === "freed") return [value, 0];
  const isHeld = holder === value;
  if (isHeld) call("DEL", keys[0]!);
  if (keys.length > 2) call("SET", keys[2]!, isHeld ? "freed" : 1, "PX", expiry);
  if (isHeld || holder === null) tell(call, args[5], ticketsOf(queue));
  return [isHeld ? value : 0, 0];
}

/** Calls the first ticket. */
function tell(call: TwinCall["call"], channel: string | undefined, queue: readonly Waiting[]): void {
  const [first] = queue.map(({ ticket }) => ticket).sort();
  if (channel !== undefined && first !== undefined) call("PUBLISH", channel, first);
}

interface Waiting {
  readonly ticket: string;
  readonly until: number;
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

/** Writes the queue where it has changed. */
function writeQueue(
  { call, key, now }: { readonly call: TwinCall["call"]; readonly key: string; readonly now: number },
  before: string,
  live: readonly Waiting[],
): void {
  const queue = live.map(({ ticket, until }) => `${ticket}:${until}`).join(",");
  if (queue === before) return;
  if (queue === "") call("DEL", key);
  else call("SET", key, queue, "PX", Math.max(...live.map(({ until }) => until)) - now, "GET");
}
