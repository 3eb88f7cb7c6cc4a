import { type Twin, whole } from "./twin.ts";

/** The twin of `announceScript`, which says what it does. */
export const announceTwin: Twin = {
  sha: {
    redis: "98ce89f57dc5f6d5994d96c4f90e5b5c688a5456",
    upstash: "e66c471d2ebab6cc08a5c2014a67d95f32fd29b1",
  },
  run({ call, keys, args }) {
    const [key, announced, ttl] = [keys[0]!, args[0]!, whole(args[1]!)];
    const found = call("GET", key) as string | null;
    if (found !== null && found > announced) return [0, found];
    call("SET", key, announced, "PX", Math.max(ttl, Number(call("PTTL", key))));
    return [announced];
  },
};
