import type { Dialect } from "../../../src/index.ts";
import type { Draw } from "../draw.ts";
import type { Forging } from "./forged.ts";
import { goodNetwork, type NetworkConditions, type StreamConditions } from "./world.ts";

/** All faults of a simulation, except those of single messages. */
export const faultKinds = [
  "link cut",
  "endpoint cut off",
  "endpoint slow",
  "endpoint silent",
  "endpoint crash",
  "clock set",
  "client paused",
  "client frozen",
  "client killed",
] as const;

/** `scripts forgotten`: as after a failover. Only in worlds about servers. */
export type FaultKind = (typeof faultKinds)[number] | "scripts forgotten";

/** For how many ms fences are remembered, and how clients' clocks differ from the endpoints'. */
export interface Retention {
  readonly ms: number;
  readonly clocks: "ahead" | "behind";
}

/** How waiters are woken up. */
export interface WakeUpConditions {
  /** The share of processes that wake others up and can be woken up. The others poll. */
  readonly share: number;
  readonly streams: StreamConditions;
  /** Whether streams stay bad during the probes after the faults. */
  readonly isLasting: boolean;
  readonly forging: Forging | undefined;
}

/** The parameters of a simulation. Each has only some of the possible faults: with all at once, one would hide another. */
export interface Scenario {
  readonly endpoints: number;
  readonly dialects: readonly Dialect[];
  /** By endpoint: whether there is no client in between that repeats requests. */
  readonly exactReplies: readonly boolean[];
  readonly processes: number;
  readonly resources: readonly string[];
  /** The typical ttl, in ms. */
  readonly ttl: number;
  readonly fencing: boolean;
  /** The kinds of calls, each with a frequency by how often it occurs here. */
  readonly work: readonly Work[];
  /** Whether holders hand locks off to other processes, and whether these extend them by themselves and hand them on. */
  readonly handingOff: boolean;
  readonly handingOn: boolean;
  /** Set where the simulation is longer than fences are remembered. */
  readonly retention: Retention | undefined;
  /** Whether holders shorten their hold, then lengthen it, and rely on that to the end while others wait. */
  readonly lingering: boolean;
  /** Roughly how many calls each process makes while there are faults. */
  readonly calls: number;
  /** Whether background work is passed to `waitUntil`. */
  readonly lifetime: "server" | "waitUntil";
  readonly faults: readonly FaultKind[];
  /** Average ms between two faults. */
  readonly faultInterval: number;
  readonly badNetwork: NetworkConditions;
  /** Whether an endpoint is silent during the probes after the faults. */
  readonly silentMinority: boolean;
  /** Whether clients use the library's HTTP endpoint. */
  readonly http: boolean;
  /** Whether processes make several calls at once, whose commands share requests. */
  readonly batches: boolean;
  /** ms that a command takes a server while a crowd of calls comes at once; 0: no crowd comes. */
  readonly crowd: number;
  /** Set where clients with queues stand still for so many ms, at all servers or at one of them. */
  readonly stall?: { readonly ms: number; readonly everywhere: boolean } | undefined;
  /** Whether these are behind gateways, too, and some clients try an address that is not the API's. */
  readonly gateways: boolean;
  /** What the last endpoint does from the beginning: it never answers, or answers null to everything and executes nothing. */
  readonly oddEndpoint?: "silent" | "answers null" | undefined;
  /** Set where waiters are woken up by messages. */
  readonly wakeUps: WakeUpConditions | undefined;
}

/** The synchronizers, each with a workload of its own in `workloads/`. */
export const synchronizers = [
  "semaphore",
  "once",
  "read-write",
  "reentrant",
  "fair",
  "latch",
  "barrier",
  "debounce",
  "singleton",
  "refresh",
] as const;

export type Synchronizer = (typeof synchronizers)[number];

/** Those that share a world with others. The newest are about one name that all calls have in common. */
export const mixed = synchronizers.slice(0, synchronizers.indexOf("debounce"));

/**
 * A kind of calls. `operate`: inspects and frees resources; `forget`: inspects and forgets keys; `attempts`: runs that are
 * counted; `locked run`: runs with locks; `flight`: single flights; `burst`: several locks at once.
 */
export type Work =
  | "lock"
  | "using"
  | "idempotency"
  | "locked run"
  | "operate"
  | "forget"
  | "attempts"
  | "flight"
  | "burst"
  | "mailbox"
  | Synchronizer;

/** Draws a scenario. */
export function drawScenario(draw: Draw): Scenario {
  const scenario = drawUsual(draw);
  const kind = draw.fraction();
  if (kind < 0.05) {
    const badNetwork = { ...goodNetwork, tail: 0.3, tailLength: 1.5 * scenario.ttl };
    return { ...plain(scenario, badNetwork), lingering: true };
  }
  if (kind < 0.1) return handingOver(scenario, { ...goodNetwork, loseReply: 0.3 });
  const late = { ...goodNetwork, tail: 0.3, tailLength: 3 * scenario.ttl };
  if (kind > 0.96) return handingOver(scenario, late);
  if (kind > 0.91) return { ...plain(scenario, late), lingering: true, handingOff: true };
  if (kind > 0.87) {
    const clocks = draw.pick(["ahead", "behind"] as const);
    // The library's retention.
    const retention = { ms: 86_400_000, clocks };
    return { ...plain(scenario, goodNetwork), fencing: true, calls: 30, retention };
  }
  return scenario;
}

/** Locks on one endpoint with no other faults: these would end holds too soon to show the rare case. */
function plain({ dialects, exactReplies, ...scenario }: Scenario, badNetwork: NetworkConditions): Scenario {
  return {
    ...scenario,
    endpoints: 1,
    dialects: dialects.slice(0, 1),
    exactReplies: exactReplies.slice(0, 1),
    work: ["lock"],
    faults: [],
    badNetwork,
    silentMinority: false,
  };
}

/** Locks that are handed from process to process, on a network whose answers get lost or whose requests are late. */
function handingOver(scenario: Scenario, badNetwork: NetworkConditions): Scenario {
  return { ...scenario, work: ["lock"], faults: [], badNetwork, handingOff: true, handingOn: true };
}

function drawUsual(draw: Draw): Scenario {
  // Many defects need several late requests in a row, and no majority that makes up for them.
  const late = draw.chance(0.15);
  const endpoints = late ? draw.pick([1, 1, 2]) : draw.pick([1, 1, 2, 3, 3, 3, 3, 4, 5]);
  const each = <Item>(item: () => Item): Item[] => Array.from({ length: endpoints }, item);
  const dialect = draw.pick(["redis", "upstash", "mixed"] as const);
  const between = draw.chance(0.2);
  const ttl = draw.pick([40, 150, 150, 600, 600, 3_000, 30_000]);
  const badNetwork: NetworkConditions = {
    latency: draw.pick([
      [0, 0],
      [1, 10],
      [1, 10],
      [1, 40],
      [1, ttl / 2],
    ] as const),
    tail: late ? 0.3 : some(draw, 0.5, [0.01, 0.05, 0.2]),
    tailLength: late ? 1.5 * ttl : draw.pick([ttl / 2, ttl, 3 * ttl, 5_000, 40_000]),
    loseRequest: some(draw, 0.4, [0.01, 0.1, 0.3]),
    loseReply: some(draw, 0.4, [0.01, 0.1, 0.3]),
    duplicate: some(draw, 0.3, [0.02, 0.2]),
    reset: some(draw, 0.3, [0.02, 0.1]),
    httpError: some(draw, 0.3, [0.02, 0.1]),
  };
  const silentMinority = endpoints > 2 && draw.chance(0.4);
  return {
    endpoints,
    dialects: each(() => (dialect === "mixed" ? draw.pick(["redis", "upstash"] as const) : dialect)),
    exactReplies: each(() => !between || draw.chance(0.4)),
    processes: draw.integer(2, draw.chance(0.2) ? 8 : 4),
    resources: draw.chance(0.6) ? ["a"] : ["a", "b{x}"],
    ttl,
    fencing: draw.chance(0.6),
    lingering: false,
    handingOff: draw.chance(0.1),
    handingOn: false,
    retention: undefined,
    work: draw.pick([
      ["lock"],
      ["lock", "using"],
      ["using"],
      ["idempotency"],
      ["lock", "idempotency"],
    ] as const),
    calls: draw.integer(4, 24),
    lifetime: draw.pick(["server", "waitUntil"] as const),
    faults: faultKinds.filter(() => draw.chance(0.35)),
    faultInterval: draw.pick([0.3, 1, 3]) * ttl,
    badNetwork: draw.chance(0.15) && !late ? goodNetwork : badNetwork,
    silentMinority,
    http: false,
    batches: false,
    crowd: 0,
    gateways: false,
    wakeUps: undefined,
  };
}

/** With some probability one of these amounts, else none. */
export const some = (draw: Draw, probability: number, amounts: readonly number[]): number =>
  draw.chance(probability) ? draw.pick(amounts) : 0;
