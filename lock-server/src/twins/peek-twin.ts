import type { Found, Twin } from "./twin.ts";

/** The twin of `peekScript`, which says what it does. */
export const peekTwin: Twin = {
  sha: "ac46b17e21e1c2f7137fdaf9eab1da69d69a7fa2",
  run({ call, keys }) {
    const [value, counter] = call("MGET", ...keys) as Found;
    return [value ?? "", call("PTTL", keys[0]!), counter ?? ""];
  },
};
