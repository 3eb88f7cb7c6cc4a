import { type Found, type Reply, type Twin, type TwinCall, timeOf, whole } from "./twin.ts";

/** The twin of `cellScript`, which says what it does. */
export const cellTwin: Twin = {
  sha: {
    redis: "55fc29fef55c3de29fb79280d85b5dd54734461a",
    upstash: "b21e8672cdded0b695b2b7e942b3cf724d9a6dbc",
  },
  run,
};

function run(twin: TwinCall): Reply {
  const { call, keys, args } = twin;
  const [op, value] = args as [string, string];
  const found = call("MGET", ...keys) as Found;
  const from = whole(args[2]!);
  const n = whole(args[3]!);
  const owner = value.slice(from - 1);
  const isMine = (text: string | null) => text !== null && text.slice(from - 1) === owner;
  const mine: number[] = [];
  let other: number | undefined;
  for (let index = 0; index < n; index += 1) {
    if (isMine(found[index]!)) mine.push(index);
    else if (found[index] !== null) other = index;
  }
  if (op === "release") return release(twin, found, mine);
  const isMissing = op === "extend" && mine.length < n;
  if ((found[n] ?? null) !== null || other !== undefined || isMissing) {
    return other === undefined ? [0, -3, ""] : [0, call("PTTL", keys[other]!), found[other]!];
  }
  const fence = raiseCounters(twin, found);
  const tags = write(twin, found);
  return from > 1 ? [value, fence, tags] : [value, fence];
}

function release({ call, keys, args }: TwinCall, found: Found, mine: readonly number[]): Reply {
  const [, value, from, count, ttl, expected] = args as [string, string, string, string, string, string];
  const [length, n] = [whole(from) - 1, whole(count)];
  if (found[n] === value) return [value];
  const tags = Array.from({ length: n }, (_, index) =>
    mine.includes(index) ? found[index]!.slice(0, length) : "-".repeat(length),
  );
  if (mine.some((index) => tags[index] !== expected.slice(index * length, (index + 1) * length))) {
    return [0, tags.join("")];
  }
  for (const index of mine) call("DEL", keys[index]!);
  const isComplete = mine.length === n;
  if (keys.length > n) call("SET", keys[n]!, isComplete ? value : (found[n] ?? 1), "PX", whole(ttl));
  return [isComplete ? value : 0];
}

/** Draws or raises the fence, and returns it as text. */
function raiseCounters({ call, keys, args }: TwinCall, found: Found): string {
  const drawn = args[0] === "acquire" ? 1 : 0;
  const first = whole(args[3]!) + 1;
  let [fence, kept] = [whole(args[6]!), whole(args[7]!)];
  for (let index = first; index < keys.length; index += 1) {
    fence = Math.max(fence, whole(found[index] ?? 0) + drawn);
  }
  if (keys.length > first) kept += Math.max(0, fence - timeOf(call));
  for (let index = first; index < keys.length; index += 1)
    call("SET", keys[index]!, fence, "PX", whole(kept), "GET");
  return String(whole(fence));
}

/** Writes the values, and returns their tags. */
function write({ call, keys, args }: TwinCall, found: Found): string {
  const [op, value] = args as [string, string];
  const [from, n, ttl] = [whole(args[2]!), whole(args[3]!), whole(args[4]!)];
  let tags = "";
  for (let index = 0; index < n; index += 1) {
    const key = keys[index]!;
    let text = found[index] ?? null;
    if (ttl === 0) {
      text ??= "";
    } else if (text === null || (op === "extend" && from === 1)) {
      text = args[5]!;
      call("SET", key, text, "PX", ttl, "GET");
    } else {
      const isShared = text.startsWith("s");
      if (text !== value && !(isShared && op === "extend")) {
        const joins = isShared ? Number(text.slice(25, 33)) || 0 : 0;
        const number = String((joins + 1) % 1e8).padStart(8, "0");
        text = `s${text.slice(1, 25)}${number}${value.slice(from - 1)}`;
      }
      call("SET", key, text, "PX", Math.max(Number(call("PTTL", key)), ttl));
    }
    tags += text.slice(0, from - 1);
  }
  return tags;
}
