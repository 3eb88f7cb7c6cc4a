import { type Twin, whole } from "./twin.ts";

/** The twin of `newestScript`, which says what it does. */
export const newestTwin: Twin = {
  sha: {
    redis: "ec2d169cc0ac128b726e83e03c25de2b22a72f5d",
    upstash: "3abb8e6f20473dae65d41508b5d556c6dfae6889",
  },
  run({ call, keys, args }) {
    const [key, announced, ttl] = [keys[0]!, args[0]!, whole(args[1]!)];
    const found = call("GET", key) as string | null;
    if (found !== null && found > announced) return [0, found];
    call("SET", key, announced, "PX", Math.max(ttl, Number(call("PTTL", key))));
    return [announced];
  },
};
