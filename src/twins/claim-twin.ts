import { type Found, type Reply, type Twin, type TwinCall, timeOf, whole } from "./twin.ts";

/** The twin of `claimScript`, which says what it does. */
export const claimTwin: Twin = {
  sha: {
    redis: "060903b18a075788d3f4bb2714d8a7593e890059",
    upstash: "9c0b192d55a274ce422c9699642ad7d0fb348880",
  },
  run,
};

/** A call, its arguments by name, and how many commands it has executed so far; `attempt` does not count. */
interface ClaimCall extends TwinCall {
  readonly pending: string;
  readonly token: string;
  /** The record and the locks, and the counters after them. */
  readonly claimed: readonly string[];
  readonly counters: readonly string[];
  readonly ttl: string;
  spent: number;
}

function run(twin: TwinCall): Reply {
  const { call, attempt, keys, args } = twin;
  const [op, pending, token, n, ttl] = args as [string, string, string, string, string];
  const ends = whole(n) + 1;
  const claim: ClaimCall = {
    keys,
    args,
    pending,
    token,
    claimed: keys.slice(0, ends),
    counters: keys.slice(ends),
    ttl,
    spent: 0,
    attempt,
    call(...words) {
      claim.spent += 1;
      return call(...words);
    },
  };
  if (op === "end") return end(claim);
  return op === "extend" ? extend(claim) : begin(claim);
}

function end(claim: ClaimCall): Reply {
  const { call, attempt, claimed, pending, token, ttl, args } = claim;
  const [record, ...locks] = claimed;
  const next = args[5]!;
  if (args[8] === "1") {
    const compareAndSet = ["SET", record!, next, "IFEQ", pending, "PX", ttl];
    const done = attempt(...(next === "" ? ["DELEX", record!, "IFEQ", pending] : compareAndSet));
    if (done !== undefined) {
      for (const lock of locks) call("DELEX", lock, "IFEQ", token);
      return [done !== null && done !== 0 ? token : 0, claim.spent + 1];
    }
  }
  const [found, ...others] = call("MGET", ...claimed) as Found;
  const gone = locks.filter((_, index) => others[index] === token);
  const isOwn = found === pending;
  if (isOwn && next === "") gone.push(record!);
  if (isOwn && next !== "") call("SET", record!, next, "PX", ttl);
  if (gone.length > 0) call("DEL", ...gone);
  return [isOwn ? token : 0, claim.spent];
}

function extend(claim: ClaimCall): Reply {
  const { call, keys, claimed, counters, pending, token, ttl, args } = claim;
  const found = call("MGET", ...keys) as Found;
  const own = claimed.map((_, index) => (index === 0 ? pending : token));
  if (own.some((value, index) => found[index] !== value)) return [0, claim.spent];
  if (ttl !== "0") for (const [index, key] of claimed.entries()) call("SET", key, own[index]!, "PX", ttl);
  const drawn = counters.map((_, index) => whole(found[claimed.length + index] ?? 0));
  const fence = Math.max(whole(args[6]!), ...drawn);
  const now = counters.length > 0 ? timeOf(call) : 0;
  for (const counter of counters) call("SET", counter, fence, "PX", kept(claim, fence, now), "GET");
  return [token, claim.spent, String(fence)];
}

function begin(claim: ClaimCall): Reply {
  const { call, claimed, counters, pending, token, ttl, args } = claim;
  const fresh: string[] = [];
  for (const [index, key] of claimed.entries()) {
    const own = index === 0 ? pending : token;
    const other = put(claim, [key, own, "PX", ttl], ["NX"]);
    if (other === null) fresh.push(key);
    if (other === null || other === own) continue;
    const why = index === 0 ? other : call("PTTL", key);
    if (fresh.length > 0) call("DEL", ...fresh);
    return index === 0 ? [0, claim.spent, "r", why] : [0, claim.spent, "l", why, other];
  }
  const now = timeOf(call);
  const least = whole(args[6]!);
  let highest = least;
  for (const counter of counters) {
    const old = put(claim, [counter, least, "PX", kept(claim, least, now)], []);
    highest = Math.max(highest, whole((old as string | null) ?? 0) + (old === null ? 0 : 1));
  }
  if (highest > least) {
    for (const counter of counters) call("SET", counter, highest, "PX", kept(claim, highest, now));
  }
  return [token, claim.spent, String(highest)];
}

/** Writes a value, with `NX` only where there is none. Returns the one before; null: there was none. */
function put(
  claim: ClaimCall,
  words: readonly [key: string, value: string | number, ...expiry: (string | number)[]],
  only: readonly string[],
): Reply {
  claim.spent += 1;
  const old = claim.attempt("SET", ...words, "GET", ...only);
  if (old !== undefined) return old;
  const found = claim.call("GET", words[0]);
  if (found === null || only.length === 0) claim.call("SET", ...words);
  return found;
}

/** For how many ms a counter with this fence is kept. */
function kept({ args }: ClaimCall, fence: number, now: number): number {
  return whole(args[7]!) + Math.max(0, fence - now);
}
