import type { Draw } from "../draw.ts";
import { forgeries } from "./forged.ts";
import {
  mixed,
  type Scenario,
  type Synchronizer,
  some,
  synchronizers,
  type WakeUpConditions,
} from "./scenario.ts";
import { goodNetwork, type StreamConditions } from "./world.ts";

/**
 * What a simulation is about: locks and idempotent runs, the same with operators, dying handlers and garbled answers,
 * runs with locks, waiters that are woken up, single flights beside runs of the same keys, endpoints at addresses of all
 * kinds, many calls at once, servers that forget scripts or are broken, posts to a mailbox, synchronizers, or one
 * synchronizer only.
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

/** Which of sixty seeds have a theme of their own. Of the others every third is about synchronizers. */
const seedsOf: Readonly<Partial<Record<Theme, readonly number[]>>> = {
  operators: [0, 24, 30, 54],
  flights: [8, 38],
  addresses: [14, 44],
  "locked-runs": [16, 19, 46, 49],
  debounce: [17],
  batches: [20, 50],
  "wake-ups": [26, 27, 56, 57],
  refresh: [41],
  singleton: [47],
  servers: [53],
  mailbox: [5, 23, 29],
};

/** The default theme of a seed. */
export function themeOf(seed: number): Theme {
  const own = Object.entries(seedsOf).find(([, seeds]) => seeds.includes(seed % 60));
  return (own?.[0] as Theme | undefined) ?? (seed % 3 === 2 ? "sync" : "locks");
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
  const wakeUps = drawWakeUps(draw);
  const link = drawLink(scenario, draw, 0.4);
  const size = { ttl, processes: draw.integer(2, 7), calls: draw.integer(3, 10) };
  const faultInterval = draw.pick([0.3, 1, 3]) * ttl;
  return { ...scenario, ...plainly, ...link, ...size, handingOff: false, faultInterval, work, wakeUps };
}

/** How streams and messages fail, what is forged, and who is woken up. */
function drawWakeUps(draw: Draw): WakeUpConditions {
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
  return { share: draw.pick([1, 1, 0.7]), streams, isLasting: draw.chance(0.5), forging };
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

/** The same scenario with posts to one mailbox, and handlers that take a while. */
function withMailbox(scenario: Scenario, draw: Draw): Scenario {
  const link = drawLink(scenario, draw, 0.3);
  // Sometimes more messages wait than an endpoint shows at once.
  const most = draw.chance(0.1) ? 14 : 8;
  const size = { processes: draw.integer(2, most / 2), calls: draw.integer(3, most) };
  const about = { ...scenario, ...plainly, ...link, ...size, handingOff: false, work: ["mailbox"] as const };
  // Messages and steps overtake each other all the time, and nothing else happens.
  if (draw.chance(0.15)) {
    const endpoints = { endpoints: 3, dialects: Array(3).fill("redis"), exactReplies: Array(3).fill(true) };
    const badNetwork = { ...goodNetwork, tail: 0.5, tailLength: draw.pick([20, 50, 200]) };
    return { ...about, ...endpoints, processes: 4, calls: 20, ttl: 600, faults: [], badNetwork };
  }
  // Those that stand by are woken up.
  if (!draw.chance(0.3)) return about;
  const ttl = draw.pick([600, 3_000, 10_000]);
  return { ...about, ttl, faultInterval: draw.pick([0.3, 1, 3]) * ttl, wakeUps: drawWakeUps(draw) };
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
  mailbox: withMailbox,
};

export const themes = [...Object.keys(scenarios), "sync", ...synchronizers] as readonly Theme[];
