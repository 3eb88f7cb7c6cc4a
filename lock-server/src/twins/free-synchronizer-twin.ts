import type { Found, Reply, Twin, TwinCall } from "./twin.ts";
import { whole } from "./twin.ts";

/** The twin of `freeSynchronizerScript`, which says what it does. */
export const freeSynchronizerTwin: Twin = {
  sha: {
    redis: "cd0cc2bb1cf4868480678a8b91ae1d3cb9c51ca5",
    upstash: "2c91f6cdf2ce73ec89c50a01fad9fc82589b4356",
  },
  run,
};

function run(twin: TwinCall): Reply {
  const { call, keys, args } = twin;
  const [nonce, op, shown] = args as [string, string, string];
  if (op === "arrivals") return replace(twin);
  if (op === "slots") {
    const limit = whole((call("GET", keys[0]!) as string | null) ?? 0);
    if (limit >= keys.length) return [nonce, -limit];
  }
  const there = call("EXISTS", ...keys.slice(0, whole(shown))) as number;
  call("DEL", ...keys);
  return [nonce, there > 0 ? 1 : 0];
}

/** Moves to a later generation. */
function replace({ call, keys, args }: TwinCall): Reply {
  const [nonce, , to, ttl] = args as [string, string, string, string];
  const key = keys[0]!;
  const remaining = call("PTTL", key) as number;
  const [generation, count] = call("HMGET", key, "g", "n") as Found;
  const at = generation ?? "";
  if (to > at) {
    call("DEL", key);
    call("HSET", key, "g", to);
    call("PEXPIRE", key, Math.max(remaining, whole(ttl)));
  }
  return [nonce, count === null ? 0 : 1, at, remaining];
}
