import type { Found, Reply, Twin, TwinCall } from "./twin.ts";
import { whole } from "./twin.ts";

/** The twin of `freeSynchronizerScript`, which says what it does. */
export const freeSynchronizerTwin: Twin = {
  sha: {
    redis: "fbe2a48f86379785b52a118430cad963c56e0e78",
    upstash: "4c7d6ab0e3c523e014a7bc1149f9d736aa717005",
  },
  run,
};

function run(twin: TwinCall): Reply {
  const { call, keys, args } = twin;
  const [nonce, op, shown] = args as [string, string, string];
  if (op === "arrivals" || op === "call") return replace(twin);
  if (op === "slots") {
    const limit = whole((call("GET", keys[0]!) as string | null) ?? 0);
    if (limit >= keys.length) return [nonce, -limit];
  }
  const there = call("EXISTS", ...keys.slice(0, whole(shown))) as number;
  call("DEL", ...keys);
  return [nonce, there > 0 ? 1 : 0];
}

/** Moves to a later generation, or replaces the last call by a later one. */
function replace({ call, keys, args }: TwinCall): Reply {
  const [nonce, op, to, ttl] = args as [string, string, string, string];
  const key = keys[0]!;
  const remaining = call("PTTL", key) as number;
  let [at, had] = ["", false];
  if (op === "call") {
    at = (call("GET", key) as string | null) ?? "";
    had = at[17] === "t";
  } else {
    const [generation, count] = call("HMGET", key, "g", "n") as Found;
    at = generation ?? "";
    had = count !== null;
  }
  if (to > at) {
    call("DEL", key);
    if (op === "call") call("SET", key, to);
    else call("HSET", key, "g", to);
    call("PEXPIRE", key, Math.max(remaining, whole(ttl)));
  }
  return [nonce, had ? 1 : 0, at, remaining];
}
