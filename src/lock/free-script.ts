import type { Script } from "../redis/script.ts";

/**
 * Deletes a key, no matter who holds it.
 *
 * KEYS: the key. ARGV: 1. `free`, for those who watch requests; 2. a nonce.
 *
 * Replies: {nonce}, {0} when there was no key. A plain DEL would do, but a client in between could invent its reply.
 */
export const freeScript: Script = {
  source: `return {redis.call("DEL", KEYS[1]) == 1 and ARGV[2] or 0}`,
  sha: {
    redis: "bbd265f6da7adbe4b4c6e6b5274cba18d1f2370d",
    upstash: "ae6854eb781dcfe5bbeb8aea7aeeb686c993193f",
  },
};
