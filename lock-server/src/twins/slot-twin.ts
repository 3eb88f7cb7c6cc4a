import { type Found, type Twin, whole } from "./twin.ts";

/** The twin of `slotScript`, which says what it does. */
export const slotTwin: Twin = {
  sha: "3655d37a5f2e3f9a5c058bff686b8de35b628341",
  run({ call, keys, args }) {
    const [value, limit, ms, acquirable] = args as [string, string, string, string];
    const [ttl, span] = [whole(ms), whole(acquirable)];
    const found = call("MGET", ...keys) as Found;
    const inUse = whole(found[0] ?? 0);
    const slots = found.slice(1).map((held) => (held === null ? "f" : "t"));
    // The last slot that has the value; the limit, at 0, is none.
    let own = Math.max(0, found.lastIndexOf(value));
    const remaining = own > 0 && span > 0 ? Number(call("PTTL", keys[own]!)) : 0;
    if (own === 0) own = 1 + slots.slice(0, span).indexOf("f");
    if (own === 0) return [0, 0, slots.join(""), inUse];
    const kept = Math.max(ttl, remaining);
    call("SET", keys[own]!, value, "PX", kept, "GET");
    if (whole(limit) >= inUse) {
      call("SET", keys[0]!, limit, "PX", Math.max(kept, Number(call("PTTL", keys[0]!))), "GET");
    }
    return [value, own, slots.join(""), inUse];
  },
};
