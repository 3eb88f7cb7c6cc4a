import { type AcquireOptions, Redlock, type WaitUntil } from "../../src/index.ts";
import { pubSub } from "../../src/wake-up/index.ts";
import type { Calls } from "./calls.ts";
import type { Draw } from "./draw.ts";
import type { Holds } from "./holds.ts";
import { createHttpLink } from "./http-link.ts";
import type { Ledger } from "./ledger.ts";
import { createLink } from "./link.ts";
import { Network } from "./network.ts";
import type { Process } from "./process.ts";
import type { Scenario } from "./scenario.ts";
import type { WakeUps } from "./wake-ups.ts";
import type { Wire } from "./wire.ts";
import type { World } from "./world.ts";

/** One client process with the library in it, and all that its calls are checked against. */
export interface Actor {
  readonly world: World;
  readonly scenario: Scenario;
  readonly process: Process;
  readonly draw: Draw;
  readonly redlock: Redlock;
  readonly wire: Wire;
  readonly wakeUps: WakeUps;
  readonly calls: Calls;
  readonly locks: Holds;
  readonly claims: Holds;
  readonly ledger: Ledger;
  /** Nonces of holds that their holders never meant to release. */
  readonly kept: Set<string>;
  /** All actors of the world, this one included. */
  readonly actors: Actor[];
  sleep(ms: number): Promise<void>;
}

/** What all actors of a world share. */
export type SharedContext = Pick<
  Actor,
  "world" | "scenario" | "wire" | "wakeUps" | "calls" | "locks" | "claims" | "ledger" | "kept" | "actors"
>;

/** Creates an actor: a client with links to all servers of its world. */
export function createActor(shared: SharedContext, process: Process): Actor {
  const { world, scenario, wire } = shared;
  const listens = scenario.wakeUps !== undefined && world.draw.chance(scenario.wakeUps.share);
  const wakeUps = listens ? shared.wakeUps : undefined;
  wakeUps?.listens(process);
  const endpoints = world.servers.map((server, index) => {
    const carrier = new Network(world, process, server);
    const way = { world, wire, process, server, carrier, wakeUps };
    return scenario.http
      ? createHttpLink({ ...way, gateways: scenario.gateways, batches: scenario.batches })
      : createLink({ ...way, exactReplies: scenario.exactReplies[index] === true });
  });
  const waitUntil: WaitUntil | undefined = scenario.lifetime === "waitUntil" ? () => undefined : undefined;
  const wakeUp = listens ? pubSub : undefined;
  const redlock = new Redlock({ endpoints, runtime: process, waitUntil, wakeUp });
  return {
    ...shared,
    process,
    draw: world.draw.fork(),
    redlock,
    sleep: (ms) => new Promise((resolve) => void process.timer(ms, resolve)),
  };
}

/** The longest that a call waits where messages wake it up, in ms: longer than it trusts in messages for others. */
export const longestWait = 90_000;

/** The virtual time of a deadline by a process's wall clock, as it is now; Infinity: there is none. */
export function timeOf({ world, process }: Actor, deadline: number | undefined): number {
  return deadline === undefined
    ? Number.POSITIVE_INFINITY
    : world.now + (deadline - process.wallClock()) / process.rate;
}

/** What a holder says of itself: every second one nothing, by a number that is drawn anyway. */
export function noteOf({ process, world }: Actor, ttl: number): string | undefined {
  return ttl % 2 === 0 ? undefined : `${process.name} at ${world.now} "🐘"\n`;
}

/** Draws the options of an acquire. */
export function drawOptions({ draw, scenario, process }: Actor): AcquireOptions & {
  readonly ttl: number;
  readonly wait: number;
  readonly timeout: number;
  readonly backoff: { readonly min: number; readonly max: number };
} {
  const ttl = Math.max(10, Math.floor(scenario.ttl * draw.between(0.5, 2)));
  // Longer pauses for longer ttls: polling shows nothing new after the first few rounds.
  const min = scenario.wakeUps
    ? draw.pick([50, 200, 400])
    : draw.pick([5, 25, 100]) * Math.max(1, scenario.ttl / 300);
  const waits = scenario.wakeUps ? [0, ttl, 10_000, longestWait] : [0, 0, 0, ttl / 2, ttl];
  const wait = scenario.lingering ? 2 * ttl : draw.pick(waits);
  const timeout = scenario.lingering
    ? ttl / 4
    : draw.pick([Math.min(1_000, ttl / 3), Math.min(1_000, ttl / 3), ttl, draw.between(5, ttl)]);
  process.timeout = timeout;
  return {
    ttl,
    wait,
    timeout,
    backoff: { min, max: draw.pick([min, 4 * min, 10 * min]) },
    fencing: scenario.fencing,
    deadline: draw.chance(0.06) ? process.wallClock() + draw.between(0, 2 * ttl) : undefined,
  };
}
