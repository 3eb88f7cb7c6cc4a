import { type Found, type Reply, type Twin, type TwinCall, timeOf, whole } from "./twin.ts";

/** The twin of `mailboxScript`, which says what it does. */
export const mailboxTwin: Twin = {
  sha: "137dfd76967bb6d90f71e5724f71e7cd209cc697",
  run(twin) {
    const { call, keys, args } = twin;
    const [op, token, ttl] = args as [string, string, string];
    const place = placeOf(twin);
    const found = call("MGET", ...keys) as Found;
    const [, holder, at] = /^([A-Za-z0-9]+) (\d+)$/.exec(found[0] ?? "") ?? [];
    if (found[0] != null && holder === undefined) return [token, "foreign"];
    const state = { holder, at, found };
    if (op === "post") return post(place, twin, state);
    if (op === "look") return [token, "seen", holder ?? "", String(place.size())];
    if (op === "end") return end(place, twin, state);
    if (op === "step") return step(place, twin, state);
    if (holder !== token) return [token, "lost"];
    if (ttl !== "0") call("PEXPIRE", place.turn, whole(ttl));
    return [token, "open"];
  },
};

/** What the script has found: the turn's holder and its last step; the tombstone and the marks. */
interface State {
  readonly holder: string | undefined;
  readonly at: string | undefined;
  readonly found: Found;
}

/** The script counts bytes. */
const encoder = new TextEncoder();

type Place = ReturnType<typeof placeOf>;

/** The commands of the script about one mailbox. */
function placeOf({ call, keys, args }: TwinCall) {
  const [turn, order, values, tombstone] = keys as [string, string, string, string];
  const [token, retention, kept] = [args[1]!, whole(args[3]!), whole(args[4]!)];
  const fields = (...names: readonly string[]) => call("HMGET", values, ...names) as Found;
  const set = (...pairs: readonly (string | number)[]) => call("HSET", values, ...pairs);
  const size = () => call("ZCOUNT", order, "-inf", "+inf") as number;
  const score = (id: string) => call("ZSCORE", order, id) as string | null;
  const first = () => (call("ZRANGE", order, 0, 0) as string[])[0] ?? "";
  const add = (id: string, stamp: number | string) => call("ZADD", order, "GT", stamp, id);
  const leave = (mark: string) => call("SET", tombstone, mark, "PX", kept);
  function expire(): void {
    const ttl = (key: string) => call("PTTL", key) as number;
    if (ttl(values) === -1) call("PEXPIRE", values, retention);
    if (ttl(order) === -1) call("PEXPIRE", order, ttl(values));
  }
  function setNext(id: string): void {
    if (set("next", id) === 1) call("PEXPIRE", values, retention);
  }
  function letGo(): void {
    call("DEL", turn);
    setNext("");
  }
  function forget(id: string, mark: string): void {
    call("ZREM", order, id);
    call("HDEL", values, `v${id}`, `c${id}`, `n${id}`);
    call("SET", mark, 1, "PX", retention);
  }
  function fail(id: string): void {
    const [value, count] = fields(`v${id}`, `n${id}`);
    if (value !== null) set(`n${id}`, whole(count ?? 0) + 1);
  }
  function look(left: ReadonlySet<string>, count: number): readonly string[] {
    const entries: string[] = [];
    let bytes = 0;
    const flat = call("ZRANGE", order, 0, 31 + count, "WITHSCORES") as string[];
    for (let at = 0; at < flat.length; at += 2) {
      const id = flat[at]!;
      if (left.has(id) || bytes >= 5e5) continue;
      const [value, from, failures] = fields(`v${id}`, `c${id}`, `n${id}`);
      bytes += encoder.encode(value ?? "").length;
      entries.push(id, flat[at + 1]!, from ?? "", failures ?? "0", value ?? "");
    }
    return entries;
  }
  const commands = {
    fields,
    set,
    size,
    score,
    first,
    add,
    leave,
    expire,
    setNext,
    letGo,
    forget,
    fail,
    look,
  };
  return { turn, order, values, token, retention, ...commands };
}

function post(place: Place, { call, keys, args }: TwinCall, { holder, found }: State): readonly Reply[] {
  const { token, retention } = place;
  const [, , ttl, , , givenStamp, own, limit, id] = args as string[];
  let [from, value] = [args[9], args[10]];
  if (keys[5] !== undefined) place.forget(args[11]!, keys[5]);
  if (id !== undefined && found[4] != null) {
    return holder === token ? [token, "stored", token, place.look(new Set(), 0)] : [token, "handled"];
  }
  const name = id ?? "";
  const [lastStamp, next, known, caller] = place.fields("last", "next", `v${name}`, `c${name}`);
  const last = whole(lastStamp ?? 0);
  let begun = next ?? "";
  const stamp = whole(givenStamp!);
  if (stamp <= last && holder !== token) return [token, "late", String(last)];
  let message = whole(own!) > 0 ? whole(own!) : stamp;
  const takes = holder === undefined && found[3] == null;
  if (id !== undefined) {
    if (known != null) {
      const old = whole(place.score(id)!);
      if (caller === from) message = Math.max(old, message);
      else [message, from, value] = [old, "", known];
    } else if (!takes && place.size() >= whole(limit!)) return [token, "full", place.first()];
    place.add(id, message);
  }
  if (takes && begun === "?") begun = place.first();
  if (takes && begun !== "") place.fail(begun);
  const largest = Math.max(last, stamp, message);
  const fields = id === undefined ? [] : [`v${id}`, value!, `c${id}`, from!];
  place.set("last", largest, "next", takes ? "?" : begun, ...fields);
  const now = timeOf(call);
  for (const key of [place.order, place.values]) {
    call("PEXPIRE", key, Math.max(0, largest - now) + retention);
  }
  if (takes) call("SET", place.turn, `${token} 0`, "PX", whole(ttl!), "GET");
  const holds = takes || holder === token;
  const entries = holds ? place.look(new Set(), 0) : [];
  return [token, "stored", takes ? token : (holder ?? ""), entries];
}

function end(place: Place, { keys, args }: TwinCall, { holder, found }: State): readonly Reply[] {
  for (const [index, id] of args.slice(5).entries()) place.forget(id, keys[4 + index]!);
  const isOwn = holder === place.token || found[3] === "ended";
  if (holder === place.token) place.letGo();
  place.leave(isOwn ? "ended" : (found[3] ?? "void"));
  return [place.token, isOwn ? "open" : "lost"];
}

function step(place: Place, { call, keys, args }: TwinCall, { holder, at, found }: State): readonly Reply[] {
  const { token } = place;
  const [number, closes, ...counts] = args.slice(5, 11) as [string, string, ...string[]];
  const [done, puts, count, failed] = counts.map(whole) as [number, number, number, number];
  const rest = args.slice(11);
  for (const [index, id] of rest.slice(0, done).entries()) place.forget(id, keys[4 + index]!);
  if (holder !== token) return [token, found[3] === "closed" ? "closed" : "lost"];
  if (whole(number) <= whole(at!)) return [token, "stale"];
  const handled: string[] = [];
  for (const [index, id] of rest.slice(done, done + puts).entries()) {
    const [stamp, from, value] = rest.slice(done + puts + count + 3 * index) as [string, string, string];
    if (found[4 + done + index] != null) handled.push(id);
    else if (place.score(id) === null) {
      place.add(id, stamp);
      place.set(`v${id}`, value, `c${id}`, from);
    }
  }
  if (puts > 0) place.expire();
  const left = rest.slice(done + puts, done + puts + count);
  let present = 0;
  for (const [index, id] of left.entries()) {
    if (index < failed) place.fail(id);
    if (place.score(id) !== null) present += 1;
  }
  if (closes === "1" && place.size() === present) {
    place.letGo();
    place.leave("closed");
    return [token, "closed"];
  }
  call("SET", place.turn, `${token} ${number}`, "KEEPTTL");
  const entries = place.look(new Set(left), count);
  if (count > 0) place.setNext(entries[0] ?? "");
  return [token, "open", handled, entries];
}
