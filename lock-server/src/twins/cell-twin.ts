import { type Found, type Reply, type Twin, type TwinCall, timeOf, whole } from "./twin.ts";

/** The twin of `cellScript`, which says what it does. */
export const cellTwin: Twin = {
  sha: "290003f9b02a407ba9e7045e4c370407ed6b19c6",
  run,
};

/** The arguments by name. */
interface CellCall {
  readonly call: TwinCall["call"];
  readonly op: string;
  readonly token: string;
  readonly ttl: number;
  readonly retention: number;
  readonly least: number;
  readonly kept: number;
  /** By key: what is expected there, and the next value. */
  readonly cells: readonly { readonly key: string; readonly expected: string; readonly next: string }[];
  readonly tombstone: string | undefined;
  readonly counters: readonly string[];
}

function run({ call, keys, args }: TwinCall): readonly Reply[] {
  const n = whole(args[2]!);
  const proves = args[0] === "prove";
  const cell: CellCall = {
    op: proves ? "claim" : args[0]!,
    token: args[1]!,
    ttl: whole(args[3]!),
    retention: whole(args[4]!),
    least: whole(args[5]!),
    kept: whole(args[6]!),
    cells: keys
      .slice(0, n)
      .map((key, index) => ({ key, expected: args[7 + 2 * index]!, next: args[8 + 2 * index]! })),
    tombstone: keys[n],
    counters: keys.slice(n + 1),
    call,
  };
  const found = call("MGET", ...keys) as Found;
  if (cell.op === "end") return end(cell, found);
  if (proves && (found[n] ?? null) === null) call("DEL", keys[n]!);
  return refusal(cell, found) ?? write(cell, found);
}

function end(cell: CellCall, found: Found): readonly Reply[] {
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
function refusal(cell: CellCall, found: Found): readonly Reply[] | undefined {
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

function write(cell: CellCall, found: Found): readonly Reply[] {
  const { call, cells, op, ttl, counters } = cell;
  const isNew = cells.some((_, index) => (found[index] ?? null) === null);
  const drawn = isNew ? 1 : 0;
  const first = cells.length + 1;
  const counts = counters.map((_, index) => found[first + index] ?? "0");
  const odd = counts.find((count) => count === "" || Number.isNaN(Number(count)));
  if (odd !== undefined) return [cell.token, odd];
  const fence = Math.max(cell.least, ...counts.map((count) => whole(count) + drawn));
  const kept = counters.length > 0 ? cell.kept + Math.max(0, fence - timeOf(call)) : 0;
  for (const counter of counters) call("SET", counter, fence, "PX", kept, "GET");
  for (const [index, { key, expected, next }] of cells.entries()) {
    const value = found[index] ?? null;
    const isWritten = value === null || (op === "keep" && value === expected);
    if (ttl > 0 && isWritten) call("SET", key, next, "PX", ttl, "GET");
  }
  return [cell.token, String(whole(fence))];
}
