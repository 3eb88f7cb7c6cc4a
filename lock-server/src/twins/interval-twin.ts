import { type Found, type Reply, type Twin, type TwinCall, timeOf, whole } from "./twin.ts";

/** The twin of `intervalScript`, which says what it does. */
export const intervalTwin: Twin = {
  sha: {
    redis: "56b46ef3ec14f72e32bab2a13f71531b3eec9343",
    upstash: "a749559feb47677fa75d8797a60383625df8e2d2",
  },
  run,
};

/** The stored interval. */
interface Stored {
  readonly own: boolean;
  /** How often the holder's run was confirmed; undefined where the holder is a claim, or there is none. */
  readonly run: string | undefined;
  readonly ends: string;
  readonly before: string;
}

function run(twin: TwinCall): readonly Reply[] {
  const { call, keys, args } = twin;
  const [value, op, ttl, number] = args as [string, string, string, string];
  const found = call("MGET", ...keys) as Found;
  const holder = found[0] ?? "";
  const [, ends, before] = /(\d+):(\d+)/.exec(found[1] ?? "0:0") as unknown as [string, string, string];
  const stored: Stored = { own: holder.endsWith(value), run: /^r(\d+):/.exec(holder)?.[1], ends, before };
  if (op === "release") return release(twin, found, stored);
  const now = timeOf(call);
  const result = [value, found[2] ?? 0];
  if (op === "extend") {
    if (!stored.own) return [0];
    if (whole(number) > whole(stored.run ?? 0)) confirm(twin, found, { ...stored, now });
    return result;
  }
  if (stored.own) return result;
  if ((holder !== "" && stored.run === undefined) || (found[3] ?? null) !== null) {
    return [0, Math.max(0, Number(call("PTTL", keys[0]!))), "c"];
  }
  if (stored.run !== undefined || whole(ends) + whole(number) > now) {
    return [0, Math.max(0, whole(ends) - now), "r"];
  }
  call("SET", keys[0]!, value, "PX", whole(ttl), "GET");
  return result;
}

function release(
  { call, keys, args }: TwinCall,
  found: Found,
  { own, run, before }: Stored,
): readonly Reply[] {
  if (own) call("DEL", keys[0]!);
  if (own && run !== undefined && found[1] !== null) call("SET", keys[1]!, `${before}:${before}`, "KEEPTTL");
  if (keys.length > 3) call("SET", keys[3]!, 1, "PX", whole(args[2]!));
  return [own ? args[0]! : 0];
}

function confirm(
  { call, keys, args }: TwinCall,
  found: Found,
  { run, ends, before, now }: Stored & { readonly now: number },
): void {
  const [value, , every, number, fence, retention] = args as [string, string, string, string, string, string];
  const ttl = whole(every);
  const kept = ttl + whole(retention);
  call("SET", keys[0]!, `r${whole(number)}:${value}`, "PX", ttl);
  call("SET", keys[1]!, `${now + ttl}:${run === undefined ? ends : before}`, "PX", kept, "GET");
  const largest = Math.max(whole(found[2] ?? 0), whole(fence));
  call("SET", keys[2]!, largest, "PX", kept + Math.max(0, largest - now), "GET");
}
