import { type Found, type Reply, type Twin, type TwinCall, whole } from "./twin.ts";

/** The twin of `slotScript`, which says what it does. */
export const slotTwin: Twin = {
  sha: {
    redis: "d5c81fbbfdbc5a38d5d9ec304ef691b55f48a40d",
    upstash: "648616441922d2dacd0c565aab269b8fcc014dc5",
  },
  run,
};

function run({ call, keys, args }: TwinCall): readonly Reply[] {
  const [value, limit, ms, acquirable] = args as [string, string, string, string];
  const [ttl, span] = [whole(ms), whole(acquirable)];
  const found = call("MGET", ...keys) as Found;
  const inUse = found[0]!;
  if (inUse !== null && inUse !== limit) return [0, whole(inUse), ""];
  const slots = found.slice(1).map((held) => (held === null ? "f" : "t"));
  // The last slot that has the value; the limit, at 0, is none.
  let own = Math.max(0, found.lastIndexOf(value));
  const remaining = own > 0 && span > 0 ? Number(call("PTTL", keys[own]!)) : 0;
  if (own === 0) own = 1 + slots.slice(0, span).indexOf("f");
  if (own === 0) return [0, 0, slots.join("")];
  const kept = Math.max(ttl, remaining);
  call("SET", keys[own]!, value, "PX", kept, "GET");
  call("SET", keys[0]!, limit, "PX", Math.max(kept, Number(call("PTTL", keys[0]!))), "GET");
  return [value, own, slots.join("")];
}
