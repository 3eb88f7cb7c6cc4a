import { type Found, type Reply, type Twin, type TwinCall, timeOf, whole } from "./twin.ts";

/** The twin of `queueScript`, which says what it does. */
export const queueTwin: Twin = {
  sha: {
    redis: "096725043e780b933c5967a63342c3227ffa87b4",
    upstash: "b4812e12d16887a86031b4600c95db8761dae2e4",
  },
  run,
};

function run(twin: TwinCall): readonly Reply[] {
  const { call, keys, args } = twin;
  const [value, ticket] = args as [string, string];
  const [expiry, ttl] = [whole(args[2]!), whole(args[3]!)];
  const [holder, queued, ...tombstones] = call("MGET", ...keys) as Found;
  const queue = queued ?? "";
  const [grace, channel] = args.slice(5);
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
  const isFree = ttl > 0 && holder === null && ahead > 0 && grace !== undefined;
  const before = /\/.*/.exec(queue)?.[0] ?? "";
  const {
    mark,
    calls: called,
    again,
  } = isFree
    ? callOf(before, { ticket, now, grace: whole(grace) })
    : { mark: before, calls: undefined, again: undefined };
  if (called === "all") {
    for (const waiting of live) waiting.until = Math.min(waiting.until, now + whole(grace!));
  }
  if (rollsBack || (ttl > 0 && expiry > 0 && !acquires))
    live.push({ ticket, until: Math.max(own, now + expiry) });
  writeQueue({ call, key: keys[1]!, now }, queue, live, acquires ? "" : mark);
  if (acquires) {
    call("SET", keys[0]!, value, "PX", ttl, "GET");
    return [value, 0];
  }
  if (rollsBack) return [value, 0];
  if (ttl > 0) {
    if (called === "all") call("PUBLISH", channel!, "0:all");
    if (called === "first") tell(call, channel, live);
    return [0, ahead, ...(again === undefined ? [] : [again])];
  }
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
  if (isHeld || holder === null) tell(call, args[6], ticketsOf(queue));
  return [isHeld ? value : 0, 0];
}

/** What a request does that finds the lock free and others before it. */
function callOf(
  mark: string,
  { ticket, now, grace }: { readonly ticket: string; readonly now: number; readonly grace: number },
): { mark: string; calls?: "first" | "all"; again: number } {
  const [, ends = "0", stage, caller] = /(\d+)([a-z])(\w+)/.exec(mark) ?? [];
  const left = whole(ends) - now;
  const begin = (calls: "first" | "all", again: number) => ({
    mark: `/${now + again}${calls[0]}${ticket}`,
    calls,
    again,
  });
  if (stage === "f" && left <= 0 && left > -grace) return begin("all", grace);
  if (left <= 0) return begin("first", 500);
  return { mark, again: caller === ticket ? left : 0 };
}

/** Calls the first ticket. */
function tell(call: TwinCall["call"], channel: string | undefined, queue: readonly Waiting[]): void {
  const [first] = queue.map(({ ticket }) => ticket).sort();
  if (channel === undefined || first === undefined) return;
  const others = queue.length > 1 ? `:${(call("PUBSUB", "NUMSUB", channel) as [string, number])[1]}` : "";
  call("PUBLISH", channel, `0:${first}${others}`);
}

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

/** Writes the queue where it has changed. */
function writeQueue(
  { call, key, now }: { readonly call: TwinCall["call"]; readonly key: string; readonly now: number },
  before: string,
  live: readonly Waiting[],
  mark: string,
): void {
  const tickets = live.map(({ ticket, until }) => `${ticket}:${until}`).join(",");
  const queue = tickets && tickets + mark;
  if (queue === before) return;
  if (queue === "") call("DEL", key);
  else call("SET", key, queue, "PX", Math.max(...live.map(({ until }) => until)) - now, "GET");
}
