import type { ByteReply } from "../../../src/testing/commands/reply.ts";
import { type Twin, type TwinCall, whole } from "./twin.ts";

/** The twin of `arrivalScript`, which says what it does. */
export const arrivalTwin: Twin = {
  sha: {
    redis: "0ec76e5d7db16344d610ebd55abcde560a9bf564",
    upstash: "6d4612fd18cdd5c34763cfb4d1f26141459685ab",
  },
  run,
};

function run({ call, keys, args }: TwinCall): ByteReply {
  const [nonce, to, count, ms, id] = args as [string, string, string, string, string];
  const [key, ttl] = [keys[0]!, whole(ms)];
  const all = call("HGETALL", key) as string[];
  let found = new Map<string, string>();
  for (let index = 0; index < all.length; index += 2) found.set(all[index]!, all[index + 1]!);
  const known = found.get("n");
  if (known !== undefined && known !== count) return [nonce, "n", whole(known)];
  let at = found.get("g") ?? "";
  let ids = [...found.keys()].filter((field) => field.length > 1);
  if (to === "" || to < at) return [nonce, at, ids];
  const remaining = Number(call("PTTL", key));
  const added: string[] = [];
  if (to > at) {
    call("DEL", key);
    at = to;
    found = new Map();
    ids = [];
    added.push("g", to);
  }
  if (!found.has("n")) added.push("n", count);
  if (id !== "" && !found.has(id)) {
    ids.push(id);
    added.push(id, "1");
  }
  if (added.length > 0) call("HSET", key, ...added);
  if (added.length > 0 || remaining < ttl / 2) call("PEXPIRE", key, Math.max(ttl, remaining));
  return [nonce, at, ids];
}
