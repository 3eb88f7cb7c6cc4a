import { type Reply, type Twin, type TwinCall, whole } from "./twin.ts";

/** The twin of `arrivalScript`, which says what it does. */
export const arrivalTwin: Twin = {
  sha: {
    redis: "8dfff17d0cf1c25305db715355ab0193a7d6d545",
    upstash: "c51ff5d610fd9f64efc733c5040b48f52264e861",
  },
  run,
};

function run({ call, keys, args }: TwinCall): Reply {
  const [nonce, to, count, ms, id] = args as [string, string, string, string, string];
  const [key, ttl] = [keys[0]!, whole(ms)];
  const all = call("HGETALL", key) as string[];
  let found = new Map<string, string>();
  for (let index = 0; index < all.length; index += 2) found.set(all[index]!, all[index + 1]!);
  const known = found.get("n");
  if (known !== undefined && known !== count) return [nonce, "n", whole(known)];
  let at = found.get("g") ?? "";
  let ids = [...found.keys()].filter((field) => field.length > 1);
  if (to === "" || to < at) return [nonce, at, ids];
  const remaining = Number(call("PTTL", key));
  const added: string[] = [];
  if (to > at) {
    call("DEL", key);
    at = to;
    found = new Map();
    ids = [];
    added.push("g", to);
  }
  if (!found.has("n")) added.push("n", count);
  if (id !== "" && !found.has(id)) {
    ids.push(id);
    added.push(id, "1");
  }
  if (added.length > 0) call("HSET", key, ...added);
  const isNews = added[0] === "g" || (added.length > 0 && ids.length === whole(count));
  if (args[5] !== undefined && isNews) call("PUBLISH", args[5], "all");
  if (added.length > 0 || remaining < ttl / 2) call("PEXPIRE", key, Math.max(ttl, remaining));
  return [nonce, at, ids];
}
