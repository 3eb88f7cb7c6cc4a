import { type Reply, type Twin, type TwinCall, timeOf, whole } from "./twin.ts";

/** The twin of `memberScript`, which says what it does. */
export const memberTwin: Twin = {
  sha: {
    redis: "0e8cc59f2bb2ad789133c2daedbfc655f65f67a3",
    upstash: "702ad366b063306c1e919f04f979b48ce9f47112",
  },
  run: (twin) => {
    const now = timeOf(twin.call);
    return twin.args[0] === "acquire" ? acquire(twin, now) : extendOrRelease(twin, now);
  },
};

function extendOrRelease({ call, keys, args }: TwinCall, now: number): readonly Reply[] {
  const [op, member, , ms, count, id] = args as [string, string, string, string, string, string];
  const [key, ttl, tombstones] = [keys[0]!, whole(ms), whole(count)];
  const waiting = keys[1 + tombstones];
  let found = scoreOf(call, key, member) > now;
  if (op === "release") {
    if (!found && tombstones > 0) found = call("GET", keys[1]!) === "freed";
    call("ZREM", key, member);
    const removed = waiting !== undefined && id !== "" && call("ZREM", waiting, id) === 1;
    for (const tombstone of keys.slice(1, 1 + tombstones)) {
      call("SET", tombstone, found ? "freed" : 1, "PX", ttl);
    }
    const channel = args[8];
    if (channel !== undefined) tell({ call, channel, key, waiting, now }, removed);
  } else if (found && ttl > 0) {
    const { remaining } = last(call, key, now);
    put(call, key, { how: "XX", name: member, ms: ttl, remaining, now });
  }
  return [found ? member : 0];
}

/** Tells those that can be served now. */
function tell({ call, channel, key, waiting, now }: Tell, removed: boolean): void {
  const free = last(call, key, now).remaining <= 0;
  const writers = waiting === undefined ? 0 : Number(call("ZCOUNT", waiting, `(${now}`, "+inf"));
  if (waiting !== undefined && writers === 0 && (free || removed)) call("PUBLISH", channel, "r");
  else if (free) call("PUBLISH", channel, "free");
}

interface Tell {
  readonly call: TwinCall["call"];
  readonly channel: string;
  readonly key: string;
  readonly waiting: string | undefined;
  readonly now: number;
}

function acquire({ call, keys, args }: TwinCall, now: number): readonly Reply[] {
  const [, member, from, ttl, count, id, always, expiry] = args as [
    string,
    string,
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  const [key, tombstones] = [keys[0]!, whole(count)];
  if (Number(call("EXISTS", ...keys.slice(1, 1 + tombstones))) > 0) {
    return scoreOf(call, key, member) > now ? [member] : [0, 0];
  }
  const waiting = keys[1 + tombstones];
  const { remaining, member: other } = last(call, key, now);
  const group = whole(from) - 1;
  const isInTheWay = remaining > 0 && other!.slice(group) !== member.slice(group);
  let retryAfter = isInTheWay ? remaining : 0;
  if (waiting !== undefined && id === "") {
    retryAfter = Math.max(retryAfter, last(call, waiting, now).remaining);
    if (retryAfter > 0 && call("ZSCORE", key, member) !== null) retryAfter = 0;
  } else if (waiting !== undefined && (retryAfter > 0 || always === "1")) {
    const announced = last(call, waiting, now);
    put(call, waiting, { how: "GT", name: id, ms: whole(expiry), remaining: announced.remaining, now });
  }
  if (retryAfter > 0) return [0, retryAfter];
  put(call, key, { how: "GT", name: member, ms: whole(ttl), remaining, now });
  return [member];
}

function scoreOf(call: TwinCall["call"], key: string, member: string): number {
  return whole((call("ZSCORE", key, member) as string | null) ?? 0);
}

/** The member with the last deadline, and the ms until then. */
function last(call: TwinCall["call"], key: string, now: number): { remaining: number; member?: string } {
  const [member, score] = call("ZRANGE", key, -1, -1, "WITHSCORES") as string[];
  const remaining = whole(score ?? 0) - now;
  return member === undefined ? { remaining } : { remaining, member };
}

interface Put {
  readonly how: "XX" | "GT";
  readonly name: string;
  readonly ms: number;
  readonly remaining: number;
  readonly now: number;
}

function put(call: TwinCall["call"], key: string, { how, name, ms, remaining, now }: Put): void {
  call("ZREMRANGEBYSCORE", key, "-inf", now);
  call("ZADD", key, how, now + ms, name);
  call("PEXPIREAT", key, now + Math.max(ms, remaining));
}
