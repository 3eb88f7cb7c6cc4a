import { freeScript } from "../../src/lock/free.lua.ts";
import { publishScript } from "../../src/lock/wake-up/publish.lua.ts";
import { cellScript } from "../../src/redis/cell.lua.ts";
import { claimScript } from "../../src/redis/claim.lua.ts";
import { peekScript } from "../../src/redis/peek.lua.ts";
import type { Script } from "../../src/redis/script.ts";
import { debounceScript } from "../../src/sync/debounce.lua.ts";
import { arrivalScript } from "../../src/sync/internal/arrival.lua.ts";
import { freeSynchronizerScript } from "../../src/sync/internal/free-synchronizer.lua.ts";
import { intervalScript } from "../../src/sync/internal/interval.lua.ts";
import { memberScript } from "../../src/sync/internal/member.lua.ts";
import { queueScript } from "../../src/sync/internal/queue.lua.ts";
import { slotScript } from "../../src/sync/internal/slot.lua.ts";
import type { Draw } from "../sim/draw.ts";

// Random calls of the library's scripts, with arguments as the library sends them, of so few keys, values and times that
// each call meets what others have left.

type Word = string | number;

/** A script with random calls of it. */
export interface RandomScript {
  readonly name: string;
  readonly script: Script;
  /** The keys and the arguments of one call. */
  readonly call: (draw: Draw) => { readonly keys: readonly string[]; readonly args: readonly Word[] };
  /** A command that puts something else there: what another release, or a lost memory, may have left. */
  readonly disturbance: (draw: Draw) => readonly Word[];
}

const ttls = [1, 7, 40, 400, 3_000];

/** A nonce as long as those of the library. */
function nonce(name: string): string {
  return name.padEnd(33, "0");
}

const nonces = ["na", "nb", "nc"].map(nonce);
const shared = (joins: number) => `s${"0".repeat(24)}${String(joins).padStart(8, "0")}`;

/** Puts a hash at one of these keys, which MGET does not see. It stays until the key is deleted or set. */
const hash = (draw: Draw, ...keys: readonly string[]) => ["HSET", draw.pick(keys), "f", "x"];

const cell: RandomScript = {
  name: "cellScript",
  script: cellScript,
  call(draw) {
    const op = draw.pick(["acquire", "acquire", "restore", "extend", "release", "release"]);
    const names = draw.pick([["a"], ["a"], ["b"], ["a", "b"], ["a", "b", "c"]]);
    const guarded = draw.chance(0.7);
    const counters = guarded && draw.chance(0.5) ? names.map((name) => `${name}:fence`) : [];
    const from = draw.pick([1, 34]);
    const value = cellValue(draw);
    const marks = names.map(() => (draw.chance(0.7) ? value : cellValue(draw)).slice(0, from - 1));
    const next = draw.chance(0.7) ? value : cellValue(draw);
    const ttl = op === "extend" && draw.chance(0.3) ? 0 : draw.pick(ttls);
    const least = draw.pick([0, 1, 1_700_000_000_000, 1_700_000_900_000, 9_007_199_254_740_000]);
    return {
      keys: [...names, ...(guarded ? ["void"] : []), ...counters],
      args: [
        op,
        value,
        from,
        names.length,
        ttl,
        op === "release" ? marks.join("") : next,
        least,
        draw.pick(ttls),
      ],
    };
  },
  disturbance(draw) {
    const key = draw.pick(["a", "b", "c", "void"]);
    if (draw.chance(0.3)) return ["DEL", key];
    if (draw.chance(0.3)) return ["SET", `${draw.pick(["a", "b"])}:fence`, draw.pick([1, 1_700_000_500_000])];
    if (draw.chance(0.1)) return hash(draw, "a", "b", "a:fence");
    const other = key === "void" ? draw.pick(["f", "1"]) : cellValue(draw);
    return ["SET", key, other, ...(draw.chance(0.5) ? ["PX", draw.pick(ttls)] : [])];
  },
};

const peek: RandomScript = {
  name: "peekScript",
  script: peekScript,
  call: (draw) => ({ keys: [draw.pick(["a", "b"]), "a:fence"], args: ["peek"] }),
  disturbance: cell.disturbance,
};

const free: RandomScript = {
  name: "freeScript",
  script: freeScript,
  call: (draw) => ({ keys: [draw.pick(["a", "b"])], args: ["free", nonce(`n${draw.integer(1, 40)}`)] }),
  disturbance: cell.disturbance,
};

/** Releases of the same keys, and messages about them. The cell is acquired by the disturbances. */
const publish: RandomScript = {
  name: "publishScript",
  script: publishScript,
  call(draw) {
    const { keys, args } = cell.call(draw);
    const names = keys.slice(0, Number(args[3]));
    const marks = names.map(() => cellValue(draw).slice(0, Number(args[2]) - 1)).join("");
    const released = ["release", ...args.slice(1, 5), marks, 0, 0];
    const channels = draw.pick([["heard"], ["unheard"], ["heard", "unheard"]]);
    return { keys: keys.slice(0, names.length + 1), args: [...released, ...channels] };
  },
  disturbance: cell.disturbance,
};

/** A nonce or a shared mark, and an owner; most of them one of two, so that they often meet. Not all is ASCII. */
function cellValue(draw: Draw): string {
  if (draw.chance(0.6)) return `${draw.pick(nonces.slice(0, 2))}:ann`;
  const mark = draw.chance(0.5) ? draw.pick(nonces) : shared(draw.pick([0, 1, 41, 99_999_999]));
  return mark + draw.pick(["", ":ann", ":bob", ":müller"]);
}

const pendings = nonces.slice(0, 2).map((token) => `P1 ${token} 1700000000000 müller`);

const claim: RandomScript = {
  name: "claimScript",
  script: claimScript,
  call(draw) {
    const op = draw.pick(["begin", "begin", "begin", "extend", "end"]);
    const names = draw.pick([["a"], ["a"], ["b"], ["a", "b"], ["b", "a", "c"]]);
    const isFenced = op === "begin" || (op === "extend" && draw.chance(0.4));
    const counters = isFenced ? names.map((name) => `${name}:fence`) : [];
    const mine = draw.pick([0, 1]);
    const ttl = isFenced && op === "extend" && draw.chance(0.5) ? 0 : draw.pick(ttls);
    const next = op === "end" && draw.chance(0.6) ? `C1 ${nonces[mine]} result` : "";
    const least = isFenced ? draw.pick([1, 1_700_000_000_000, 1_700_000_900_000, 9_007_199_254_740_000]) : 0;
    const retention = isFenced ? draw.pick(ttls) : 0;
    return {
      keys: ["record", ...names, ...counters],
      args: [
        op,
        pendings[mine]!,
        nonces[mine]!,
        names.length,
        ttl,
        next,
        least,
        retention,
        draw.pick([0, 1]),
      ],
    };
  },
  disturbance(draw) {
    const key = draw.pick(["a", "b", "record"]);
    if (draw.chance(0.4)) return ["DEL", key];
    if (draw.chance(0.1)) return hash(draw, key, "a:fence", "b:fence");
    if (draw.chance(0.3)) return ["SET", "a:fence", draw.pick([1, 1_700_000_500_000])];
    const other = key === "record" ? draw.pick([...pendings, `C1 ${nonces[2]} other`]) : draw.pick(nonces);
    return ["SET", key, other, ...(draw.chance(0.7) ? ["PX", draw.pick(ttls)] : [])];
  },
};

const member: RandomScript = {
  name: "memberScript",
  script: memberScript,
  call(draw) {
    const op = draw.pick(["acquire", "acquire", "extend", "release"]);
    const ttl = op === "extend" && draw.chance(0.3) ? 0 : draw.pick(ttls);
    const value = draw.pick(nonces) + draw.pick([":r", ":w"]);
    const waits = draw.chance(0.7);
    const id = waits && draw.chance(0.6) ? draw.pick(["wa", "wb"]) : "";
    // An acquire always names a tombstone.
    const least = op === "acquire" ? 1 : 0;
    const tombstones = ["void:1", "void:2"].slice(0, ttl > 0 ? draw.integer(least, 2) : least);
    const wakeUp = op === "release" && draw.chance(0.5) ? ["channel"] : [];
    const announcement = [id, draw.pick([0, 1]), id ? draw.pick(ttls) : 0];
    return {
      keys: ["members", ...tombstones, ...(waits ? ["waiting"] : [])],
      args: [op, value, 34, ttl, tombstones.length, ...announcement, ...wakeUp],
    };
  },
  disturbance: (draw) => ["DEL", draw.pick(["members", "waiting", "void:1", "void:2"])],
};

const interval: RandomScript = {
  name: "intervalScript",
  script: intervalScript,
  call(draw) {
    const value = draw.pick(nonces);
    const keys = ["once", "once-end", "once-fence", ...(draw.chance(0.6) ? [`void:${value}`] : [])];
    const op = draw.pick(["acquire", "acquire", "extend", "release"]);
    const fence = draw.pick([0, 5, 1_700_000_000_100, 1_700_000_900_000]);
    const args = {
      acquire: [draw.pick(ttls), draw.pick([0, 3, 50, 5_000])],
      extend: [draw.pick(ttls), draw.integer(1, 4), fence, draw.pick([1, 10_000])],
      release: [draw.pick(ttls)],
    }[op]!;
    // A confirmation and its release come without a tombstone.
    return { keys: op === "extend" ? keys.slice(0, 3) : keys, args: [value, op, ...args] };
  },
  disturbance(draw) {
    const keys = ["once", "once-end", "once-fence"];
    return draw.chance(0.2) ? hash(draw, ...keys) : ["DEL", draw.pick([...keys, `void:${nonces[0]}`])];
  },
};

const arrival: RandomScript = {
  name: "arrivalScript",
  script: arrivalScript,
  call(draw) {
    const to = draw.pick(["", "g1", "g1", "g2", "g3"]);
    const id = to === "" ? "" : draw.pick(["", "ia", "ib", "ic"]);
    const count = draw.chance(0.9) ? 3 : 2;
    const wakeUp = draw.chance(0.5) ? ["channel"] : [];
    return { keys: ["latch"], args: [draw.pick(nonces), to, count, draw.pick(ttls), id, ...wakeUp] };
  },
  disturbance: (draw) =>
    // A reset by an operator leaves the generation only.
    draw.pick([
      ["DEL", "latch"],
      ["HSET", "latch", "g", draw.pick(["g2", "g4"])],
      ["HDEL", "latch", "n"],
      ["PEXPIRE", "latch", draw.pick(ttls)],
    ]),
};

const slot: RandomScript = {
  name: "slotScript",
  script: slotScript,
  call(draw) {
    const slots = draw.pick([["slot:0"], ["slot:1", "slot:2", "slot:0"], ["slot:2", "slot:0", "slot:1"]]);
    const limit = draw.chance(0.9) ? 3 : 2;
    const span = draw.chance(0.3) ? 0 : draw.pick([1, slots.length]);
    return { keys: ["limit", ...slots], args: [draw.pick(nonces), limit, draw.pick(ttls), span] };
  },
  disturbance: (draw) =>
    draw.pick([
      ["DEL", draw.pick(["limit", "slot:0", "slot:1"])],
      ["SET", draw.pick(["slot:0", "slot:2"]), draw.pick(nonces), "PX", draw.pick(ttls)],
      hash(draw, "limit", "slot:0", "slot:1"),
    ]),
};

const queue: RandomScript = {
  name: "queueScript",
  script: queueScript,
  call(draw) {
    const value = draw.pick(nonces);
    const ticket = draw.pick(["0001a", "0002b", "0003c"]);
    const tombstones = [`void:${ticket}`, `void:${value}`];
    const wakeUp = draw.chance(0.5) ? [draw.pick(ttls), "channel"] : [];
    if (wakeUp.length > 0 && draw.chance(0.2)) {
      const guarded = draw.chance(0.5);
      const keys = ["fair", "queue", ...(guarded ? [tombstones[1]!] : [])];
      return { keys, args: [value, "", guarded ? draw.pick(ttls) : 0, 0, 0, ...wakeUp] };
    }
    if (draw.chance(0.3)) {
      const removed = draw.pick([value, ticket]);
      const args = [removed, ticket, draw.pick(ttls), 0, 0, ...wakeUp];
      return { keys: ["fair", "queue", tombstones[0]!], args };
    }
    const rollsBack = draw.chance(0.4);
    const expiry = rollsBack || draw.chance(0.8) ? draw.pick(ttls) : 0;
    const lengths = rollsBack ? [0, draw.pick(ttls)] : [draw.pick(ttls), 0, ...wakeUp];
    return { keys: ["fair", "queue", ...tombstones], args: [value, ticket, expiry, ...lengths] };
  },
  disturbance: (draw) =>
    draw.chance(0.2)
      ? hash(draw, "fair", "queue")
      : ["DEL", draw.pick(["fair", "queue", "void:0001a", `void:${nonces[0]}`])],
};

const announce: RandomScript = {
  name: "debounceScript",
  script: debounceScript,
  call(draw) {
    const announced = `${draw.integer(1, 40)}`.padStart(16, "0") + draw.pick(["ta", "tb"]);
    return { keys: ["debounce"], args: [announced, draw.pick(ttls)] };
  },
  disturbance: () => ["DEL", "debounce"],
};

/** A call of `debounce`, or what replaces one that was freed. */
const debounced = (draw: Draw) =>
  `d${String(draw.integer(1, 4)).padStart(16, "0")}${draw.pick(["ta", "ub"])}`;

const freeSynchronizer: RandomScript = {
  name: "freeSynchronizerScript",
  script: freeSynchronizerScript,
  call(draw) {
    const op = draw.pick(["keys", "slots", "arrivals", "call"]);
    const slots = ["slot:0", "slot:1", "slot:2"].slice(0, draw.integer(1, 3));
    const keys = {
      keys: ["limit", "slot:0"],
      slots: ["limit", ...slots],
      arrivals: ["latch"],
      call: ["debounce"],
    }[op]!;
    const to = op === "call" ? debounced(draw) : `g${draw.integer(1, 4)}`;
    const rest = { keys: [draw.integer(1, 2)], slots: [1] }[op] ?? [to, draw.pick(ttls)];
    return { keys, args: [draw.pick(nonces), op, ...rest] };
  },
  disturbance: (draw) =>
    draw.pick([
      ["SET", "limit", draw.integer(1, 4), "PX", draw.pick(ttls)],
      ["SET", "slot:0", draw.pick(nonces)],
      ["SET", "debounce", debounced(draw), "PX", draw.pick(ttls)],
      ["HSET", "latch", "g", draw.pick(["g2", "g4"]), ...(draw.chance(0.5) ? ["n", 3] : [])],
      ["PEXPIRE", "latch", draw.pick(ttls)],
    ]),
};

/** Every script, each of which has a twin. */
export const randomScripts: readonly RandomScript[] = [
  cell,
  peek,
  free,
  publish,
  claim,
  member,
  interval,
  arrival,
  slot,
  queue,
  announce,
  freeSynchronizer,
];
