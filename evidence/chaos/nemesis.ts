import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import type { FaultRule, LocalEndpoint } from "../../local/src/index.ts";
import type { Draw } from "../sim/draw.ts";
import { quorumOf } from "../sim/field.ts";
import type { Fleet } from "./fleet.ts";
import { machineTime } from "./records.ts";

/** All faults that are injected. The report counts each of them. */
export const faultKinds = [
  "server killed, memory kept",
  "server killed, memory lost",
  "server stopped",
  "link refused",
  "link silent",
  "quorum down",
  "link slow",
  "reply slow",
  "reply dropped",
  "request duplicated",
  "request reordered",
  "HTTP 500",
  "client stopped",
  "client killed",
] as const;

export type FaultKind = (typeof faultKinds)[number];

/** One fault, and when it began and ended in machine time. `target`: an endpoint's name, or a client's seat. */
export interface Fault {
  readonly kind: FaultKind;
  readonly target: string;
  readonly from: number;
  readonly to: number;
}

/** What faults are injected into, when and how. */
interface FaultOptions {
  readonly endpoints: readonly LocalEndpoint[];
  readonly fleet: Fleet;
  /** Decides what, where and for how long. */
  readonly draw: Draw;
  /** Ends the faults. */
  readonly signal: AbortSignal;
  /** Aborts when servers may begin to lose their memory. */
  readonly losing: AbortSignal;
}

/** Faults of a link that leave its endpoint usable. */
const linkRules: readonly (readonly [FaultKind, FaultRule])[] = [
  ["link slow", { fault: "delay", ms: [20, 400], probability: 0.7 }],
  ["reply slow", { fault: "delay-reply", ms: [20, 600], probability: 0.5 }],
  ["reply dropped", { fault: "drop-reply", probability: 0.4 }],
  ["request duplicated", { fault: "duplicate", probability: 0.7 }],
  ["request reordered", { fault: "reorder", probability: 0.4 }],
  ["HTTP 500", { fault: "status", status: 500, probability: 0.5 }],
];

/** Faults that make an endpoint unavailable; only one of these at a time at each. */
const outages: readonly FaultKind[] = [
  "server killed, memory kept",
  "server killed, memory kept",
  "server stopped",
  "link refused",
  "link silent",
];

/**
 * Injects faults until `signal` aborts, and has repaired everything when it resolves. Several loops run at the same
 * time, so faults overlap. Enough endpoints stay up for a quorum, except that one loop takes the quorum away now and
 * then, for a short time. Each loop draws its faults from a shuffled deck, so that none is left out.
 *
 * What follows from a fault depends on real time: the same random numbers give a similar run, not the same.
 */
export async function injectFaults(options: FaultOptions): Promise<readonly Fault[]> {
  const nemesis = new Nemesis(options);
  // Wait for all loops, also when one fails: none may leave its fault unrepaired.
  const ended = await Promise.allSettled([
    nemesis.outages(),
    nemesis.quorumOutages(),
    nemesis.linkFaults(),
    nemesis.linkFaults(),
    nemesis.clientStops(),
    nemesis.clientKills(),
  ]);
  for (const loop of ended) if (loop.status === "rejected") throw loop.reason;
  return nemesis.faults;
}

class Nemesis {
  readonly #options: FaultOptions;
  readonly #draw: Draw;
  readonly #signal: AbortSignal;
  readonly faults: Fault[] = [];
  readonly #down = new Set<LocalEndpoint>();
  /** How many endpoints may be down while a quorum stays up. */
  readonly #mostDown: number;

  constructor(options: FaultOptions) {
    const { length } = options.endpoints;
    this.#options = options;
    this.#draw = options.draw;
    this.#signal = options.signal;
    this.#mostDown = length - quorumOf(length);
  }

  /** Takes single endpoints down. First without, later with losses of memory. */
  async outages(): Promise<void> {
    await this.#outagesUntil(this.#options.losing, this.#draw.deck(outages));
    const lost: FaultKind = "server killed, memory lost";
    const draw = this.#draw.deck([...outages, lost]);
    const first = [lost];
    await this.#outagesUntil(this.#signal, () => first.pop() ?? draw());
  }

  async #outagesUntil(until: AbortSignal, draw: () => FaultKind): Promise<void> {
    while (!until.aborted) {
      const endpoint = this.#draw.pick(this.#options.endpoints);
      if (this.#down.size < this.#mostDown && !this.#down.has(endpoint)) {
        await this.#takeDown(endpoint, draw());
      }
      await pauseFor(this.#draw.between(100, 700), until);
    }
  }

  async #takeDown(endpoint: LocalEndpoint, kind: FaultKind): Promise<void> {
    this.#down.add(endpoint);
    if (kind.startsWith("server killed")) await this.#killServer(endpoint, kind);
    else if (kind === "server stopped") await this.#stopServer(endpoint);
    else await this.#withRule(endpoint, kind, cut(kind), this.#pause(200, 1500));
    this.#down.delete(endpoint);
  }

  #killServer(endpoint: LocalEndpoint, kind: FaultKind): Promise<void> {
    const memory = kind === "server killed, memory lost" ? "lost" : "kept";
    return this.#during(kind, endpoint.name, async () => {
      // Sometimes the server alone dies, and its gateway answers with errors; sometimes the whole machine.
      if (this.#draw.chance(0.5)) process.kill(pidOf(endpoint), "SIGKILL");
      else await endpoint.stop();
      await this.#pause(200, 1200);
      await endpoint.stop();
      await restart(endpoint, memory);
    });
  }

  #stopServer(endpoint: LocalEndpoint): Promise<void> {
    return this.#during("server stopped", endpoint.name, async () => {
      const pid = pidOf(endpoint);
      process.kill(pid, "SIGSTOP");
      await this.#pause(200, 2000);
      process.kill(pid, "SIGCONT");
    });
  }

  /** Takes so many endpoints down at once that no quorum is left. */
  async quorumOutages(): Promise<void> {
    for (await this.#pause(2000, 4000); !this.#signal.aborted; await this.#pause(4000, 9000)) {
      const up = this.#options.endpoints.filter((endpoint) => !this.#down.has(endpoint));
      const draw = this.#draw.deck(up);
      const taken = Array.from({ length: this.#mostDown + 1 - this.#down.size }, draw);
      await this.#during("quorum down", taken.map(({ name }) => name).join(" "), async () => {
        const over = this.#pause(300, 1500);
        await Promise.all(taken.map((endpoint) => this.#cutOff(endpoint, over)));
      });
    }
  }

  async #cutOff(endpoint: LocalEndpoint, until: Promise<void>): Promise<void> {
    this.#down.add(endpoint);
    const kind = this.#draw.pick(["link refused", "link silent"] as const);
    await this.#withRule(endpoint, kind, cut(kind), until);
    this.#down.delete(endpoint);
  }

  async linkFaults(): Promise<void> {
    for (const draw = this.#draw.deck(linkRules); !this.#signal.aborted; await this.#pause(0, 300)) {
      const [kind, rule] = draw();
      const endpoint = this.#draw.pick(this.#options.endpoints);
      if (endpoint.faults.list().some(({ fault }) => fault === rule.fault)) continue;
      await this.#withRule(endpoint, kind, rule, this.#pause(400, 2000));
    }
  }

  async clientStops(): Promise<void> {
    const { fleet } = this.#options;
    for (; !this.#signal.aborted; await this.#pause(50, 400)) {
      const seat = this.#anySeat();
      await this.#during("client stopped", `seat ${seat}`, async () => {
        fleet.signal(seat, "SIGSTOP");
        // Often longer than the ttl: others get the lock meanwhile, and the client wakes up in the middle of its hold.
        await this.#pause(300, 3500);
        fleet.signal(seat, "SIGCONT");
      });
    }
  }

  async clientKills(): Promise<void> {
    const { fleet } = this.#options;
    for (await this.#pause(1000, 2500); !this.#signal.aborted; await this.#pause(1500, 5000)) {
      const seat = this.#anySeat();
      await this.#during("client killed", `seat ${seat}`, async () => {
        await fleet.kill(seat);
        await this.#pause(50, 500);
        await fleet.respawn(seat);
      });
    }
  }

  /** An endpoint has a fault rule until `until`. */
  #withRule(endpoint: LocalEndpoint, kind: FaultKind, rule: FaultRule, until: Promise<void>): Promise<void> {
    return this.#during(kind, endpoint.name, async () => {
      const remove = endpoint.faults.add(rule);
      await until;
      remove();
    });
  }

  /** Notes when a fault begins and ends. */
  async #during(kind: FaultKind, target: string, fault: () => Promise<void>): Promise<void> {
    const span = { kind, target, from: machineTime(), to: Number.POSITIVE_INFINITY };
    this.faults.push(span);
    await fault();
    span.to = machineTime();
  }

  #anySeat(): number {
    return this.#draw.integer(0, this.#options.fleet.size - 1);
  }

  #pause(least: number, most: number): Promise<void> {
    return pauseFor(this.#draw.between(least, most), this.#signal);
  }
}

function cut(kind: FaultKind): FaultRule {
  return { fault: kind === "link refused" ? "down" : "drop-request" };
}

function pidOf({ pid }: LocalEndpoint): number {
  if (pid === undefined) throw new Error("an endpoint without a server process");
  return pid;
}

/** Waits for `ms`, or until `signal` aborts. */
async function pauseFor(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await Promise.allSettled([sleep(ms, undefined, { signal })]);
}

/** Tries for a while: another connection may have been given the server's port while it was away. */
async function restart(endpoint: LocalEndpoint, memory: "kept" | "lost"): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await endpoint.start({ memory });
    } catch (error) {
      if (attempt === 50) throw error;
      await sleep(100);
    }
  }
}
