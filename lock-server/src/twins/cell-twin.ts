import { type Found, type Reply, type Twin, type TwinCall, timeOf, whole } from "./twin.ts";

/** The twin of `cellScript`, which says what it does. */
export const cellTwin: Twin = {
  sha: "290003f9b02a407ba9e7045e4c370407ed6b19c6",
  run(twin) {
    const cell = cellOf(twin);
    const { call, op, cells, tombstone } = cell;
    const found = call("MGET", ...twin.keys) as Found;
    if (op === "end") return end(cell, found);
    if (op === "prove" && (found[cells.length] ?? null) === null) call("DEL", tombstone!);
    return refusal(cell, found) ?? write(cell, found);
  },
};

type Cell = ReturnType<typeof cellOf>;

/** The keys and the arguments by name; with each key of the cell, the value that is expected there, and the next one. */
function cellOf({ call, keys, args }: TwinCall) {
  const [op, token] = args as [string, string];
  const number = (at: number) => whole(args[at]!);
  const cells = keys
    .slice(0, number(2))
    .map((key, index) => ({ key, expected: args[7 + 2 * index]!, next: args[8 + 2 * index]! }));
  const [tombstone, ...counters] = keys.slice(cells.length);
  const times = { ttl: number(3), retention: number(4), kept: number(6) };
  return { call, op, token, ...times, least: number(5), cells, tombstone, counters };
}

function end(cell: Cell, found: Found): readonly Reply[] {
  const { call, cells, token, ttl, tombstone, retention } = cell;
  const old = found[cells.length] ?? null;
  const isRepeated = old === token;
  const hits = cells.map(({ expected }, index) => found[index] === expected);
  const own = cells.filter((_, index) => hits[index]);
  for (const { key, next } of own) if (next !== "") call("SET", key, next, "PX", ttl);
  const gone = own.filter(({ next }) => next === "").map(({ key }) => key);
  if (gone.length > 0) call("DEL", ...gone);
  const foundAll = hits.every(Boolean);
  if (tombstone !== undefined && !isRepeated) {
    call("SET", tombstone, foundAll ? token : (old ?? 1), "PX", retention);
  }
  return [token, hits.map((hit) => (hit || isRepeated ? "t" : "f")).join("")];
}

/** The reply where something is in the way. */
function refusal(cell: Cell, found: Found): readonly Reply[] | undefined {
  const { call, cells, op, token } = cell;
  const keeps = op === "keep";
  for (const [index, { key, expected, next }] of cells.entries()) {
    const value = found[index] ?? null;
    if (value === next || (keeps ? value === expected : value === null)) continue;
    const asks = value !== null && !keeps && next === token;
    const remaining = asks ? call("PTTL", key) : -2;
    return [0, index + 1, remaining, value ?? ""];
  }
  return (found[cells.length] ?? null) === null ? undefined : [0, 0, -2, ""];
}

function write(cell: Cell, found: Found): readonly Reply[] {
  const { call, cells, op, token, ttl, counters } = cell;
  const isNew = cells.some((_, index) => (found[index] ?? null) === null);
  const drawn = isNew ? 1 : 0;
  const counts = counters.map((_, index) => found[cells.length + 1 + index] ?? "0");
  const odd = counts.find((count) => count === "" || Number.isNaN(Number(count)));
  if (odd !== undefined) return [token, odd];
  const fence = Math.max(cell.least, ...counts.map((count) => whole(count) + drawn));
  const kept = counters.length > 0 ? cell.kept + Math.max(0, fence - timeOf(call)) : 0;
  for (const counter of counters) call("SET", counter, fence, "PX", kept, "GET");
  for (const [index, { key, expected, next }] of cells.entries()) {
    const value = found[index] ?? null;
    const isWritten = value === null || (op === "keep" && value === expected);
    if (ttl > 0 && isWritten) call("SET", key, next, "PX", ttl, "GET");
  }
  return [token, String(whole(fence))];
}
