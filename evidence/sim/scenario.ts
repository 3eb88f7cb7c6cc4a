import type { Dialect } from "../../src/index.ts";
import type { Draw } from "./draw.ts";
import { type Forging, forgeries } from "./forged.ts";
import { mixed, type Synchronizer, synchronizers } from "./synchronizers.ts";
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

/**
 * `operate`: inspects and frees resources; `forget`: the same of keys; `attempts`: runs that are counted; `locked run`:
 * runs with locks; `flight`: single flights; `burst`: several locks at once.
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
  | Synchronizer;

/**
 * What a simulation is about: locks and idempotent runs, the same with operators, dying handlers and garbled answers,
 * runs with locks, waiters that are woken up, single flights beside runs of the same keys, endpoints at addresses of all
 * kinds, many calls at once, servers that forget scripts or are broken, synchronizers, or one synchronizer only.
 */
export type Theme = keyof typeof scenarios | "sync" | Synchronizer;

/** What a theme makes of the scenario that was drawn. `fork`: a source of its own. */
export function aboutTheme(drawn: Scenario, theme: Theme, fork: () => Draw): Scenario {
  // Holds are long enough to outlast counters.
  if (theme === "locks") return drawn.retention ? { ...drawn, ttl: drawn.retention.ms / 2 } : drawn;
  const scenario = { ...drawn, retention: undefined };
  const about = theme in scenarios ? scenarios[theme as keyof typeof scenarios] : undefined;
  return about
    ? about(scenario, fork())
    : withSynchronizers(scenario, fork(), theme as "sync" | Synchronizer);
}

/** The default theme of a seed. */
export function themeOf(seed: number): Theme {
  // These have worlds of their own, so that the other seeds still draw what they drew before they were added.
  if (seed % 60 === 41) return "refresh";
  if (seed % 60 === 47) return "singleton";
  if (seed % 60 === 53) return "servers";
  if (seed % 30 === 17) return "debounce";
  if (seed % 30 === 0 || seed % 30 === 24) return "operators";
  if (seed % 30 === 16 || seed % 30 === 19) return "locked-runs";
  if (seed % 30 === 26 || seed % 30 === 27) return "wake-ups";
  if (seed % 30 === 8) return "flights";
  if (seed % 30 === 14) return "addresses";
  if (seed % 30 === 20) return "batches";
  return seed % 3 === 2 ? "sync" : "locks";
}

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

/** Without what only locks have. */
const plainly = { lingering: false };

/** Whether clients use HTTP, and how often its answers are garbled. An HTTP endpoint is known not to repeat anything. */
function drawLink({ badNetwork, exactReplies }: Scenario, draw: Draw, probability: number) {
  const http = draw.chance(probability);
  return {
    http,
    badNetwork: { ...badNetwork, garbled: http ? draw.pick([0, 0.02, 0.1]) : 0 },
    exactReplies: exactReplies.map((exact) => exact || http),
  };
}

/** With some probability one of these amounts, else none. */
const some = (draw: Draw, probability: number, amounts: readonly number[]): number =>
  draw.chance(probability) ? draw.pick(amounts) : 0;

/** The same scenario with operators: they inspect and free what others hold, and forget what others have stored. */
function withOperators(scenario: Scenario, draw: Draw): Scenario {
  const work = draw.pick([
    ["lock", "lock", "operate"],
    ["lock", "using", "operate"],
    ["idempotency", "idempotency", "forget"],
    ["attempts", "attempts", "forget"],
    ["attempts"],
    ["lock", "idempotency"],
  ] as const);
  const link = drawLink(scenario, draw, 0.5);
  const handingOff = draw.chance(0.3);
  return { ...scenario, ...plainly, ...link, work, handingOff, handingOn: handingOff };
}

/** The same scenario with runs that lock resources, beside plain locks of the same resources and runs of the same keys. */
function withLockedRuns(scenario: Scenario, draw: Draw): Scenario {
  const work = draw.pick([
    ["locked run"],
    ["locked run", "lock"],
    ["locked run", "locked run", "lock", "using"],
    ["locked run", "locked run", "idempotency"],
    ["locked run", "lock", "idempotency"],
    ["locked run", "locked run", "lock", "operate"],
  ] as const);
  const link = drawLink(scenario, draw, 0.3);
  return { ...scenario, ...plainly, ...link, work, handingOff: draw.chance(0.2) };
}

/**
 * The same scenario with waiters that are woken up by streams of messages, some of them lost, late, doubled, forged, cut
 * or silent. They wait for so long that each bound of their pauses is reached.
 */
function withWakeUps(scenario: Scenario, draw: Draw): Scenario {
  const work = draw.pick([
    ["lock"],
    ["lock", "using"],
    ["semaphore"],
    ["lock", "semaphore"],
    ["lock", "locked run"],
    ["fair"],
    ["read-write"],
    ["reentrant"],
    ["latch"],
    ["barrier"],
    ["fair", "read-write"],
  ] as const);
  const ttl = draw.pick([600, 3_000, 10_000, 30_000]);
  const streams: StreamConditions = {
    cut: some(draw, 0.4, [0.2, 0.6, 1]),
    silent: some(draw, 0.3, [0.1, 0.5]),
    early: some(draw, 0.3, [0.1, 0.5]),
    lose: some(draw, 0.4, [0.1, 0.5, 1]),
    double: some(draw, 0.3, [0.2, 1]),
    late: some(draw, 0.4, [0.1, 0.5]),
  };
  const every = draw.pick([200, 1_000, 3_000]);
  const forging = draw.chance(0.5) ? { every, payloads: draw.pick(forgeries) } : undefined;
  const wakeUps = { share: draw.pick([1, 1, 0.7]), streams, isLasting: draw.chance(0.5), forging };
  const link = drawLink(scenario, draw, 0.4);
  const size = { ttl, processes: draw.integer(2, 7), calls: draw.integer(3, 10) };
  const faultInterval = draw.pick([0.3, 1, 3]) * ttl;
  return { ...scenario, ...plainly, ...link, ...size, handingOff: false, faultInterval, work, wakeUps };
}

/** The same scenario with single flights, beside runs of the same keys. */
function withFlights(scenario: Scenario, draw: Draw): Scenario {
  const work = draw.pick([
    ["flight"],
    ["flight", "idempotency"],
    ["flight", "flight", "idempotency"],
  ] as const);
  return { ...scenario, ...plainly, work };
}

/** The same scenario with endpoints of every dialect, at addresses of all kinds: directly, behind gateways, or wrong. */
function withAddresses(scenario: Scenario, draw: Draw): Scenario {
  const work = draw.pick([["lock"], ["lock", "using"], ["lock", "idempotency"]] as const);
  const dialects = scenario.dialects.map(() => draw.pick(["redis", "redis-8.4", "upstash"] as const));
  // An HTTP endpoint is known not to repeat anything.
  const exactReplies = scenario.exactReplies.map(() => true);
  return { ...scenario, work, dialects, exactReplies, http: true, gateways: true };
}

/** The same scenario with processes that acquire several locks at once, over HTTP, where commands share requests. */
function withBatches(scenario: Scenario, draw: Draw): Scenario {
  const resources = ["a", "b", "c", "d", "e"].slice(0, draw.integer(2, 5));
  const exactReplies = scenario.exactReplies.map(() => true);
  const crowd = draw.chance(0.5) ? draw.pick([1, 4, 8]) : 0;
  const stall = draw.chance(0.3) ? { ms: draw.between(500, 5_000), everywhere: draw.chance(0.7) } : undefined;
  return { ...scenario, work: ["burst"], resources, exactReplies, http: true, batches: true, crowd, stall };
}

/**
 * The same scenario with servers that forget their scripts while they are slow, as in a failover; or with a perfect network
 * and three endpoints, of which one is silent or behind a gateway that answers null to everything.
 */
function withServers(scenario: Scenario, draw: Draw): Scenario {
  const servers = { ...scenario, ...plainly, handingOff: false, processes: 4 };
  const oddEndpoint = draw.pick([undefined, "silent", "answers null"] as const);
  if (!oddEndpoint) {
    const faults = ["scripts forgotten", "scripts forgotten", "endpoint slow"] as const;
    const exactReplies = scenario.exactReplies.map(() => true);
    const dialects = scenario.dialects.map(() => "redis" as const);
    return { ...servers, dialects, exactReplies, faults, work: ["lock"], fencing: false };
  }
  const work = draw.pick([["lock"], ["idempotency"], ["lock", "idempotency"]] as const);
  const dialects = Array.from({ length: 3 }, () => draw.pick(["redis", "upstash"] as const));
  // A native claim of a run is granted by null. No gateway has said null to everything in front of such a server.
  if (oddEndpoint === "answers null" && work.some((what) => what === "idempotency")) dialects[2] = "redis";
  return {
    ...servers,
    oddEndpoint,
    endpoints: 3,
    dialects,
    exactReplies: [true, true, true],
    ttl: draw.pick([3_000, 30_000]),
    resources: ["a"],
    work,
    lifetime: "server",
    faults: [],
    badNetwork: goodNetwork,
    silentMinority: false,
  };
}

/** The same scenario, with one or two synchronizers in place of locks. */
function withSynchronizers(scenario: Scenario, draw: Draw, theme: "sync" | Synchronizer): Scenario {
  const chosen = theme === "sync" ? [draw.pick(mixed), draw.pick(mixed)] : [theme];
  return { ...scenario, work: [...new Set(chosen)] };
}

const scenarios = {
  locks: (scenario: Scenario) => scenario,
  operators: withOperators,
  "locked-runs": withLockedRuns,
  "wake-ups": withWakeUps,
  flights: withFlights,
  addresses: withAddresses,
  batches: withBatches,
  servers: withServers,
};

export const themes = [...Object.keys(scenarios), "sync", ...synchronizers] as readonly Theme[];
