import { type Twin, timeOf, whole } from "./twin.ts";

/** The twin of `memberScript`, which says what it does. */
export const memberTwin: Twin = {
  sha: "04a7e9d8416b257b9b8e76a45e5b310bcadfb2c6",
  run({ call, keys, args }) {
    const [op, member, ms, id, expiry, always, channel] = args as [string, string, string, ...string[]];
    const [members, tombstone = "", waiting, left] = keys as [string, ...string[]];
    const ttl = whole(ms);
    const now = timeOf(call);
    /** The ms until the last deadline, and the member that has it. */
    const last = (key: string) => {
      const [other, score] = call("ZRANGE", key, -1, -1, "WITHSCORES") as string[];
      return { remaining: whole(score ?? 0) - now, other };
    };
    const put = (key: string, how: "XX" | "GT", [name, ms]: readonly [string, number], remaining: number) => {
      call("ZREMRANGEBYSCORE", key, "-inf", now);
      call("ZADD", key, how, now + ms, name);
      call("PEXPIREAT", key, now + Math.max(ms, remaining));
    };
    const isThere = () => whole((call("ZSCORE", members, member) as string | null) ?? 0) > now;
    if (op === "extend") {
      const found = isThere();
      if (found && ttl > 0) put(members, "XX", [member, ttl], last(members).remaining);
      return [found ? member : 0];
    }
    if (op === "release") {
      const found = isThere() || call("GET", tombstone) === "freed";
      call("ZREM", members, member);
      call("SET", tombstone, found ? "freed" : 1, "PX", ttl);
      const removed = id !== "" && call("ZREM", waiting!, id!) === 1;
      if (left !== undefined) call("SET", left, 1, "PX", ttl);
      if (channel !== undefined) {
        const free = last(members).remaining <= 0;
        const writers =
          waiting === undefined ? undefined : Number(call("ZCOUNT", waiting, `(${now}`, "+inf"));
        if (writers === 0 && (free || removed)) call("PUBLISH", channel, "r");
        else if (free) call("PUBLISH", channel, "free");
      }
      return [found ? member : 0];
    }
    if (Number(call("EXISTS", tombstone, left ?? tombstone)) > 0) return isThere() ? [member] : [0, 0];
    const { remaining, other } = last(members);
    let retryAfter = remaining > 0 && other!.slice(33) !== member.slice(33) ? remaining : 0;
    if (waiting !== undefined && id === "") {
      retryAfter = Math.max(retryAfter, last(waiting).remaining);
      if (retryAfter > 0 && call("ZSCORE", members, member) !== null) retryAfter = 0;
    } else if (left !== undefined && (retryAfter > 0 || always === "1")) {
      put(waiting!, "GT", [id!, whole(expiry!)], last(waiting!).remaining);
    }
    if (retryAfter > 0) return [0, retryAfter];
    put(members, "GT", [member, ttl], remaining);
    return [member];
  },
};
