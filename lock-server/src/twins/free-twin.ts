import type { Twin } from "./twin.ts";

/** The twin of `freeScript`, which says what it does. */
export const freeTwin: Twin = {
  sha: {
    redis: "bbd265f6da7adbe4b4c6e6b5274cba18d1f2370d",
    upstash: "ae6854eb781dcfe5bbeb8aea7aeeb686c993193f",
  },
  run: ({ call, keys, args }) => [call("DEL", keys[0]!) === 1 ? args[1]! : 0],
};
