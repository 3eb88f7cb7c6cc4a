import { freeScript } from "../../src/inspect/free.lua.ts";
import { cellScript } from "../../src/redis/cell.lua.ts";
import { peekScript } from "../../src/redis/peek.lua.ts";
import type { Script } from "../../src/redis/script.ts";
import { arrivalScript } from "../../src/sync/internal/arrival.lua.ts";
import { intervalScript } from "../../src/sync/internal/interval.lua.ts";
import { mailboxScript } from "../../src/sync/internal/mailbox.lua.ts";
import { memberScript } from "../../src/sync/internal/member.lua.ts";
import { queueScript } from "../../src/sync/internal/queue.lua.ts";
import { slotScript } from "../../src/sync/internal/slot.lua.ts";
import type { Draw } from "../sim/draw.ts";

// Random calls of the library's scripts, with arguments as the library sends them, of so few keys, values and times that
// each call meets what others have left.

type Word = string | number;

/** A script with random calls of it. */
export interface RandomScript {
  readonly script: Script;
  /** The keys and the arguments of one call. */
  readonly call: (draw: Draw) => { readonly keys: readonly string[]; readonly args: readonly Word[] };
  /** A command that puts something else there: what another release, or a lost memory, may have left. */
  readonly disturbance: (draw: Draw) => readonly Word[];
}

const ttls = [1, 7, 40, 400, 3_000];

/** A nonce as long as those of the library. */
const nonce = (name: string) => name.padEnd(33, "0");
const nonces = ["na", "nb", "nc"].map(nonce);

/** Puts a hash at one of these keys, which MGET does not see. It stays until the key is deleted or set. */
const hash = (draw: Draw, ...keys: readonly string[]) => ["HSET", draw.pick(keys), "f", "x"];

const fences = [0, 1, 1_700_000_000_000, 1_700_000_900_000, 9_007_199_254_740_000];

/** Not all is ASCII. */
const pendingOf = (token: string) => `P1 ${token} 1700000000000 müller`;
const completeOf = (token: string) => `C1 ${token} result`;

/** What a call expects at a key, and what it writes there. Sometimes what another has. */
function pairOf(draw: Draw, op: string, own: string, isRecord: boolean): Word[] {
  const other = draw.pick(nonces);
  const of = (text: string) => (draw.chance(0.9) ? text : isRecord ? pendingOf(other) : other);
  if (op === "end") return [of(own), isRecord && draw.chance(0.6) ? completeOf(draw.pick(nonces)) : ""];
  return op === "keep" ? [of(own), draw.chance(0.7) ? own : of(other)] : ["", of(own)];
}

/** Of locks, and of the record of a run. */
function cellDisturbance(draw: Draw): readonly Word[] {
  const key = draw.pick(["a", "b", "c", "record", "void"]);
  if (draw.chance(0.3)) return ["DEL", key];
  if (draw.chance(0.3)) return ["SET", `${draw.pick(["a", "b"])}:fence`, draw.pick([1, 1_700_000_500_000])];
  if (draw.chance(0.1)) return hash(draw, "a", "b", "record", "void", "a:fence");
  const token = draw.pick(nonces);
  const others = { record: [pendingOf(token), completeOf(token)], void: [token, "1"] }[key] ?? [token];
  return ["SET", key, draw.pick(others), ...(draw.chance(0.5) ? ["PX", draw.pick(ttls)] : [])];
}

const ids = ["ia", "ib", "ic", "iü"];
const stamps = [1_699_999_999_000, 1_700_000_000_000, 1_700_000_000_005, 1_700_000_600_000];

/** As JSON, and sometimes so large that only a few are shown at once. */
const messageOf = (draw: Draw) =>
  draw.chance(0.06) ? `v"${draw.pick(["x", "ü"]).repeat(260_000)}"` : draw.pick(['v"a"', "v1", 'v"ü"']);

/** Some of the ids, each once. */
const someIds = (draw: Draw, probability: number) => ids.filter(() => draw.chance(probability));

/** The ids whose marks are among the keys, and the arguments. */
type MailboxCall = readonly [marked: readonly string[], args: readonly Word[]];

function postOf(draw: Draw): MailboxCall {
  const head = [draw.pick(stamps), draw.pick([0, 0, ...stamps]), draw.pick([2, 3, 100])];
  if (draw.chance(0.2)) return [[], head];
  const id = draw.pick(ids);
  const dropped = draw.chance(0.1) ? [draw.pick(ids)] : [];
  const args = [...head, id, draw.pick(["call1", "call2"]), messageOf(draw), ...dropped];
  return [[id, ...dropped], args];
}

function stepOf(draw: Draw): MailboxCall {
  const [done, puts] = [someIds(draw, 0.3), someIds(draw, 0.2)];
  const left = draw.chance(0.3) ? someIds(draw, 0.5) : [];
  const counts = [done.length, puts.length, left.length, draw.integer(0, left.length)];
  const entries = puts.flatMap(() => [draw.pick(stamps), draw.pick(["call1", ""]), messageOf(draw)]);
  const head = [draw.integer(1, 6), Number(draw.chance(0.5)), ...counts];
  return [
    [...done, ...puts],
    [...head, ...done, ...puts, ...left, ...entries],
  ];
}

/** Every script, each of which has a twin. */
export const randomScripts: Readonly<Record<string, RandomScript>> = {
  /** Locks, and the record of a run with its locks behind it. */
  cell: {
    script: cellScript,
    call(draw) {
      const op = draw.pick(["claim", "claim", "claim", "claim", "keep", "keep", "end", "end"]);
      const names = draw.pick([["a"], ["a"], ["b"], ["a", "b"], ["b", "a", "c"]]);
      const run = draw.chance(0.3) ? ["record"] : [];
      const keys = [...run, ...names];
      const counters = draw.chance(0.5) ? names.map((name) => `${name}:fence`) : [];
      const guards = draw.chance(0.7) ? ["void", ...counters] : [];
      const token = draw.pick(nonces);
      const own = [...run.map(() => pendingOf(token)), ...names.map(() => token)];
      const ttl = op === "keep" && draw.chance(0.3) ? 0 : draw.pick(ttls);
      const isFirst = op === "claim" && guards.length > 0 && draw.chance(0.3);
      const numbers = [keys.length, ttl, draw.pick(ttls), draw.pick(fences), draw.pick(ttls)];
      const pairs = own.flatMap((text, index) => pairOf(draw, op, text, index < run.length));
      return { keys: [...keys, ...guards], args: [isFirst ? "prove" : op, token, ...numbers, ...pairs] };
    },
    disturbance: cellDisturbance,
  },
  peek: {
    script: peekScript,
    call: (draw) => ({ keys: [draw.pick(["a", "b"]), "a:fence"], args: ["peek"] }),
    disturbance: cellDisturbance,
  },
  free: {
    script: freeScript,
    call(draw) {
      const keys = draw.pick([["a"], ["b"], ["a", "b"], ["b", "c", "a"]]);
      return { keys, args: ["free", nonce(`n${draw.integer(1, 40)}`), draw.integer(1, keys.length)] };
    },
    disturbance: cellDisturbance,
  },
  member: {
    script: memberScript,
    call(draw) {
      const op = draw.pick(["acquire", "acquire", "extend", "release"]);
      const ttl = op === "extend" && draw.chance(0.3) ? 0 : draw.pick(ttls);
      const value = draw.pick(nonces) + draw.pick([":r", ":w"]);
      const channel = op === "release" && draw.chance(0.5) ? ["channel"] : [];
      const ofReader = [op, value, ttl, "", 0, 0, ...channel];
      if (op === "extend") return { keys: ["members"], args: ofReader };
      const keys = ["members", `void:${value}`, ...(draw.chance(0.7) ? ["waiting"] : [])];
      const id = draw.pick(["wa", "wb"]);
      // Of a reader, or a member without readers and writers.
      if (keys.length < 3 || draw.chance(0.4)) return { keys, args: ofReader };
      if (draw.chance(0.7)) keys.push(`void:${id}`);
      return { keys, args: [op, value, ttl, id, draw.pick(ttls), draw.pick([0, 1]), ...channel] };
    },
    disturbance: (draw) => ["DEL", draw.pick(["members", "waiting", "void:wa", `void:${nonces[0]}:r`])],
  },
  interval: {
    script: intervalScript,
    call(draw) {
      const value = draw.pick(nonces);
      const keys = ["once", "once-end", "once-fence", ...(draw.chance(0.6) ? [`void:${value}`] : [])];
      const op = draw.pick(["acquire", "acquire", "extend", "release"] as const);
      const fence = draw.pick([0, 5, 1_700_000_000_100, 1_700_000_900_000]);
      const more = {
        acquire: [draw.pick(ttls), draw.pick([0, 3, 50, 5_000])],
        extend: [draw.integer(1, 4), fence, draw.pick([1, 10_000])],
        release: [],
      }[op];
      // A confirmation comes without a tombstone.
      return { keys: op === "extend" ? keys.slice(0, 3) : keys, args: [value, op, draw.pick(ttls), ...more] };
    },
    disturbance(draw) {
      const keys = ["once", "once-end", "once-fence"];
      if (draw.chance(0.1)) return ["SET", draw.pick(keys.slice(1)), "foreign"];
      return draw.chance(0.2) ? hash(draw, ...keys) : ["DEL", draw.pick([...keys, `void:${nonces[0]}`])];
    },
  },
  arrival: {
    script: arrivalScript,
    call(draw) {
      const to = draw.pick(["", "g1", "g1", "g2", "g3"]);
      const id = to === "" ? "" : draw.pick(["", "ia", "ib", "ic"]);
      // An operator does not know it.
      const count = id === "" && draw.chance(0.2) ? "" : draw.chance(0.9) ? 3 : 2;
      const wakeUp = count && draw.chance(0.5) ? ["channel"] : [];
      // A half of it may be exactly what has passed.
      const ttl = to !== "" && draw.chance(0.1) ? 0 : draw.pick([...ttls, 14, 80, 800]);
      return { keys: ["latch"], args: [draw.pick(nonces), to, count, ttl, id, ...wakeUp] };
    },
    // A reset by an operator leaves the generation only.
    disturbance: (draw) =>
      draw.pick([
        ["DEL", "latch"],
        ["HSET", "latch", "g", draw.pick(["g2", "g4"])],
        ["PEXPIRE", "latch", draw.pick(ttls)],
      ]),
  },
  slot: {
    script: slotScript,
    call(draw) {
      const slots = draw.pick([["slot:0"], ["slot:1", "slot:2", "slot:0"], ["slot:2", "slot:0", "slot:1"]]);
      const span = draw.chance(0.3) ? 0 : draw.pick([1, slots.length]);
      const args = [draw.pick(nonces), draw.chance(0.9) ? 3 : 2, draw.pick(ttls), span];
      return { keys: ["limit", ...slots], args };
    },
    disturbance: (draw) =>
      draw.pick([
        ["DEL", draw.pick(["limit", "slot:0", "slot:1"])],
        ["SET", draw.pick(["slot:0", "slot:2"]), draw.pick(nonces), "PX", draw.pick(ttls)],
        hash(draw, "limit", "slot:0", "slot:1"),
      ]),
  },
  queue: {
    script: queueScript,
    call(draw) {
      // Many, so that replies differ in how many tickets are before one.
      const number = draw.integer(1, 9);
      const [value, ticket] = [nonce(`n${number}`), `000${number}a`];
      const tombstones = [`void:${value}`, `void:${ticket}`];
      const op = draw.pick(["acquire", "acquire", "rollBack", "leave"]);
      if (op === "leave") {
        const wakeUp = draw.chance(0.7) ? ["channel"] : [];
        const guards = draw.chance(0.6) ? [tombstones[1]!] : [];
        const args = [op, draw.pick([value, ticket]), ticket, draw.pick(ttls), 0, ...wakeUp];
        return { keys: ["fair", "queue", ...guards], args };
      }
      const expiry = op === "rollBack" || draw.chance(0.8) ? draw.pick(ttls) : 0;
      return { keys: ["fair", "queue", ...tombstones], args: [op, value, ticket, draw.pick(ttls), expiry] };
    },
    disturbance: (draw) =>
      draw.chance(0.2)
        ? hash(draw, "fair", "queue")
        : ["DEL", draw.pick(["fair", "queue", "void:0001a", `void:${nonces[0]}`])],
  },
  mailbox: {
    script: mailboxScript,
    call(draw) {
      const token = draw.pick(nonces);
      const op = draw.pick(["post", "post", "post", "step", "step", "step", "end", "keep", "look"]);
      const done = op === "end" ? someIds(draw, 0.2) : [];
      const [marked, args] = op === "post" ? postOf(draw) : op === "step" ? stepOf(draw) : [done, done];
      const keys = ["box", "order", "values", `void:${token}`, ...marked.map((id) => `done:${id}`)];
      const ttl = op === "keep" && draw.chance(0.3) ? 0 : draw.pick([...ttls, 30_000]);
      return { keys, args: [op, token, ttl, draw.pick([1_000, 86_400_000]), 60_000, ...args] };
    },
    disturbance: (draw) =>
      draw.pick([
        ["DEL", "box"],
        ["DEL", "order", "values"],
        ["DEL", `done:${draw.pick(ids)}`],
        ["SET", `void:${draw.pick(nonces)}`, draw.pick(["ended", "closed", "void"])],
        ["DEL", ...nonces.map((token) => `void:${token}`)],
        ["SET", "box", draw.pick(["foreign", `${nonces[0]} 2`, `${nonces[1]} x`])],
        hash(draw, "box", `done:${ids[0]}`),
      ]),
  },
};
