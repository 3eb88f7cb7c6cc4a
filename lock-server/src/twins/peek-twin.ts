import type { Found, Twin } from "./twin.ts";

/** The twin of `peekScript`, which says what it does. */
export const peekTwin: Twin = {
  sha: {
    redis: "ac46b17e21e1c2f7137fdaf9eab1da69d69a7fa2",
    upstash: "ffc8444cf56c8d1c91d0d4a1735897b7de248616",
  },
  run({ call, keys }) {
    const [value, counter] = call("MGET", ...keys) as Found;
    return [value ?? "", call("PTTL", keys[0]!), counter ?? ""];
  },
};
