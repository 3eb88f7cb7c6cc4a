import { type Twin, whole } from "./twin.ts";

/** The twin of `arrivalScript`, which says what it does. */
export const arrivalTwin: Twin = {
  sha: "ce5b9b997cc25857112265e42bf3714de641b83e",
  run({ call, keys, args }) {
    const [nonce, to, count, ms, id, channel] = args as [string, string, string, string, string, ...string[]];
    const [key, ttl] = [keys[0]!, whole(ms)];
    const all = call("HGETALL", key) as string[];
    let found = new Map<string, string>();
    for (let index = 0; index < all.length; index += 2) found.set(all[index]!, all[index + 1]!);
    let at = found.get("g") ?? "";
    let ids = [...found.keys()].filter((field) => field.length > 1);
    const expected = found.get("n") ?? count;
    const reply = () => [nonce, at, ids, whole(expected || 0)];
    if (ttl === 0) {
      if (at === to) call("DEL", key);
      return reply();
    }
    if (to === "" || to < at || (expected !== count && count !== "")) return reply();
    const remaining = Number(call("PTTL", key));
    const added: string[] = [];
    if (to > at) {
      call("DEL", key);
      at = to;
      found = new Map();
      ids = [];
      added.push("g", to);
    }
    if (!found.has("n") && count !== "") added.push("n", count);
    if (id !== "" && !found.has(id)) {
      ids.push(id);
      added.push(id, "1");
    }
    if (added.length > 0) call("HSET", key, ...added);
    const isNews = added[0] === "g" || (added.length > 0 && ids.length === whole(count));
    if (channel !== undefined && isNews) call("PUBLISH", channel, "all");
    if (added.length > 0 || remaining < ttl / 2) call("PEXPIRE", key, Math.max(ttl, remaining));
    return reply();
  },
};
