import { type Found, type Twin, timeOf, whole } from "./twin.ts";

/** The twin of `intervalScript`, which says what it does. */
export const intervalTwin: Twin = {
  sha: "4ddd3dc52df0327c79b8a61c4f3c2bb9cd41e9e9",
  run({ call, keys, args }) {
    const [value, op, ms, number, more, retention] = args as [string, string, ...string[]];
    const [holderKey, intervalsKey, fenceKey, tombstone] = keys as [string, string, string, string?];
    const [held, intervals, fence, left] = call("MGET", ...keys) as Found;
    const holder = held ?? "";
    const own = holder.endsWith(value);
    const confirmed = /^r(\d+):/.exec(holder)?.[1];
    const [, last, before] = /^(\d+-\d+):(\d+-\d+)$/.exec(intervals ?? "0-0:0-0") ?? [];
    const ttl = whole(ms!);
    if (op === "release") {
      if (own) call("DEL", holderKey);
      if (own && confirmed !== undefined && intervals !== null && last) {
        call("SET", intervalsKey, `${before}:${before}`, "KEEPTTL");
      }
      if (tombstone !== undefined) call("SET", tombstone, 1, "PX", ttl);
      return [own ? value : 0];
    }
    if (!last) return [0, 2, "f"];
    if (Number.isNaN(Number(fence ?? 0))) return [0, 3, "f"];
    const now = timeOf(call);
    const done = [value, fence ?? 0];
    if (op === "extend") {
      if (!own) return [0];
      if (whole(number!) <= whole(confirmed ?? 0)) return done;
      const kept = ttl + whole(retention!);
      const interval = `${now}-${now + ttl}:${confirmed === undefined ? last : before}`;
      const largest = Math.max(whole(fence ?? 0), whole(more!));
      call("SET", holderKey, `r${whole(number!)}:${value}`, "PX", ttl);
      call("SET", intervalsKey, interval, "PX", kept, "GET");
      call("SET", fenceKey, largest, "PX", kept + Math.max(0, largest - now), "GET");
      return done;
    }
    if (own) return done;
    if ((holder !== "" && confirmed === undefined) || (left ?? null) !== null) {
      return [0, Math.max(0, Number(call("PTTL", holderKey))), "c"];
    }
    const [from, to] = last.split("-").map(whole) as [number, number];
    const ends = Math.min(to, from + whole(number!));
    if ((confirmed !== undefined && intervals === null) || ends + whole(more!) > now) {
      return [0, Math.max(0, ends - now), "r"];
    }
    call("SET", holderKey, value, "PX", ttl, "GET");
    return done;
  },
};
