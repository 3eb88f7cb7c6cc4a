import { Redlock, type WaitUntil } from "../../../src/index.ts";
import { pubSub } from "../../../src/wake-up/index.ts";
import type { Holds } from "../checks/holds.ts";
import type { Ledger } from "../checks/ledger.ts";
import type { Draw } from "../draw.ts";
import { createHttpLink } from "../network/http-link.ts";
import { createLink } from "../network/link.ts";
import { Network } from "../network/network.ts";
import type { WakeUps } from "../wire/wake-ups.ts";
import type { Wire } from "../wire/wire.ts";
import type { Process } from "../world/process.ts";
import type { Scenario } from "../world/scenario.ts";
import type { World } from "../world/world.ts";
import type { Calls } from "./calls.ts";

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
