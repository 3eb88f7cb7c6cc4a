import { type Found, type Reply, type Twin, type TwinCall, timeOf, whole } from "./twin.ts";

/** The twin of `intervalScript`, which says what it does. */
export const intervalTwin: Twin = {
  sha: "4ddd3dc52df0327c79b8a61c4f3c2bb9cd41e9e9",
  run,
};

/** What is stored. */
interface Stored {
  readonly own: boolean;
  /** How often the holder's run was confirmed; undefined where the holder is a claim, or there is none. */
  readonly run: string | undefined;
  /** The last interval and the one before it; undefined: another program has written there. */
  readonly intervals: readonly [last: string, before: string] | undefined;
}

function run(twin: TwinCall): readonly Reply[] {
  const { call, keys, args } = twin;
  const [value, op, ms, number, more] = args as [string, string, string, string, string];
  const found = call("MGET", ...keys) as Found;
  const holder = found[0] ?? "";
  const [, last, before] = /^(\d+-\d+):(\d+-\d+)$/.exec(found[1] ?? "0-0:0-0") ?? [];
  const intervals = last && before ? ([last, before] as const) : undefined;
  const stored: Stored = { own: holder.endsWith(value), run: /^r(\d+):/.exec(holder)?.[1], intervals };
  if (op === "release") return release(twin, found, stored);
  if (!intervals) return [0, 2, "f"];
  if (Number.isNaN(Number(found[2] ?? 0))) return [0, 3, "f"];
  const now = timeOf(call);
  const result = [value, found[2] ?? 0];
  if (op === "extend") {
    if (!stored.own) return [0];
    if (whole(number) > whole(stored.run ?? 0)) confirm(twin, found, { ...stored, intervals, now });
    return result;
  }
  if (stored.own) return result;
  if ((holder !== "" && stored.run === undefined) || (found[3] ?? null) !== null) {
    return [0, Math.max(0, Number(call("PTTL", keys[0]!))), "c"];
  }
  const [from, to] = intervals[0].split("-").map(whole) as [number, number];
  const ends = Math.min(to, from + whole(number));
  if ((stored.run !== undefined && found[1] === null) || ends + whole(more) > now) {
    return [0, Math.max(0, ends - now), "r"];
  }
  call("SET", keys[0]!, value, "PX", whole(ms), "GET");
  return result;
}

function release(
  { call, keys, args }: TwinCall,
  found: Found,
  { own, run, intervals }: Stored,
): readonly Reply[] {
  if (own) call("DEL", keys[0]!);
  if (own && run !== undefined && found[1] !== null && intervals) {
    const [, before] = intervals;
    call("SET", keys[1]!, `${before}:${before}`, "KEEPTTL");
  }
  if (keys.length > 3) call("SET", keys[3]!, 1, "PX", whole(args[2]!));
  return [own ? args[0]! : 0];
}

function confirm(
  { call, keys, args }: TwinCall,
  found: Found,
  { run, intervals, now }: Stored & { readonly intervals: readonly [string, string]; readonly now: number },
): void {
  const [value, , every, number, fence, retention] = args as [string, string, string, string, string, string];
  const ttl = whole(every);
  const kept = ttl + whole(retention);
  call("SET", keys[0]!, `r${whole(number)}:${value}`, "PX", ttl);
  const [last, before] = intervals;
  const interval = `${now}-${now + ttl}:${run === undefined ? last : before}`;
  call("SET", keys[1]!, interval, "PX", kept, "GET");
  const largest = Math.max(whole(found[2] ?? 0), whole(fence));
  call("SET", keys[2]!, largest, "PX", kept + Math.max(0, largest - now), "GET");
}
