import type { Draw } from "../draw.ts";
import { type Assumption, assumptions, type Invariant, invariants } from "./invariants.ts";
import type { Process } from "./process.ts";
import { Scheduler } from "./scheduler.ts";
import type { Server } from "./server.ts";

/** An invariant that did not hold. */
export interface Violation {
  readonly invariant: Invariant;
  /** Virtual ms. */
  readonly at: number;
  readonly detail: string;
  /** The assumptions that it needs and that were dropped. */
  readonly without: readonly Assumption[];
}

/** The state of the network. Probabilities are for each request. */
export interface NetworkConditions {
  /** Least and most ms that a message takes. */
  readonly latency: readonly [number, number];
  /** The probability that a message takes much longer, and by up to how many ms. */
  readonly tail: number;
  readonly tailLength: number;
  readonly loseRequest: number;
  readonly loseReply: number;
  /** The only key whose requests lose replies. Default: all. */
  readonly loseRepliesOf?: string;
  readonly duplicate: number;
  readonly reset: number;
  readonly httpError: number;
  /** The probability that an HTTP answer is garbled. Default 0. */
  readonly garbled?: number;
}

/** What may happen to the streams of messages that wake up waiters. */
export interface StreamConditions {
  /** Probabilities for each stream: that it is cut, that no message of it comes, that it is confirmed before it stands. */
  readonly cut: number;
  readonly silent: number;
  readonly early: number;
  /** Probabilities for each message: that it is lost, comes twice, or comes much later. */
  readonly lose: number;
  readonly double: number;
  readonly late: number;
}

export const goodStreams: StreamConditions = { cut: 0, silent: 0, early: 0, lose: 0, double: 0, late: 0 };

export const goodNetwork: NetworkConditions = {
  latency: [1, 10],
  tail: 0,
  tailLength: 0,
  loseRequest: 0,
  loseReply: 0,
  duplicate: 0,
  reset: 0,
  httpError: 0,
};

/** What a world is created with. */
export interface WorldOptions {
  readonly dropped: readonly Assumption[];
  /** Default false. */
  readonly traced?: boolean;
  /** How many worlds there were before in this process, and this one. Default 1. */
  readonly serial?: number;
}

/** One simulated world: its time, processes, servers and present faults, and everything observed in it. */
export class World {
  readonly scheduler: Scheduler = new Scheduler();
  readonly draw: Draw;
  readonly dropped: readonly Assumption[];
  readonly processes: Process[] = [];
  readonly servers: Server[] = [];
  network: NetworkConditions = goodNetwork;
  streams: StreamConditions = goodStreams;
  /** Nonces of what an operator has freed on any server, of any holder. */
  readonly freed = new Set<string>();
  /** Links that are cut, by `process>server`. */
  readonly cuts = new Map<string, "silent" | "refused">();
  /** How often each event occurred, by name. */
  readonly counts = new Map<string, number>();
  /** Violations that are not allowed. */
  readonly violations: Violation[] = [];
  /** Violations that are allowed because an assumption was dropped. */
  readonly excused: Violation[] = [];
  /** One line per event, if traced. */
  readonly lines: string[] | undefined;

  readonly #serial: number;

  constructor(draw: Draw, { dropped, traced = false, serial = 1 }: WorldOptions) {
    this.draw = draw;
    this.#serial = serial;
    this.dropped = dropped;
    this.lines = traced ? [] : undefined;
  }

  /** Virtual ms. */
  get now(): number {
    return this.scheduler.now;
  }

  /** How many ms a message from or to a server takes. */
  drawDelay({ slowness }: Server): number {
    const { draw, network } = this;
    const { latency, tail, tailLength } = network;
    const late = draw.chance(tail) ? draw.between(0, tailLength) : 0;
    const longest = this.keeps("bounded delay") ? 50_000 : Number.POSITIVE_INFINITY;
    return Math.min(draw.between(...latency) + late + slowness, longest);
  }

  count(what: string, times = 1): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + times);
  }

  /**
   * A name that only this world has: a client may know servers by their names and addresses, and must know nothing of an
   * earlier simulation.
   */
  ownName(name: string): string {
    return `${name}.${this.#serial}`;
  }

  /** A text without what makes names this world's own: the same seed always gives the same texts. */
  #plain(text: string): string {
    return text.replaceAll(ownNames, "$1");
  }

  /** Adds a line to the trace. The line is computed only if the world is traced. */
  trace(line: () => string): void {
    this.lines?.push(this.#plain(`${this.now.toFixed(3)} ${line()}`));
  }

  /** Whether this world keeps an assumption. */
  keeps(assumption: Assumption): boolean {
    return !this.dropped.includes(assumption);
  }

  /**
   * Checks an invariant at a place where it could fail, and counts that, unless a violation would be excused: an
   * invariant that is never checked proves nothing.
   *
   * @param needs the assumptions for this case. Default: those of the invariant
   */
  check(
    invariant: Invariant,
    holds: boolean,
    detail: () => string,
    needs: readonly Assumption[] = invariants[invariant],
  ): void {
    this.checked(invariant, needs);
    if (!holds) this.violate(invariant, detail(), needs);
  }

  /** Counts that an invariant was checked where it could have failed, and holds. */
  checked(invariant: Invariant, needs: readonly Assumption[] = invariants[invariant]): void {
    if (needs.every((assumption) => this.keeps(assumption))) this.count(checkedName(invariant));
  }

  /**
   * Records that an invariant does not hold. It is excused when an assumption that it needs was dropped.
   *
   * @param needs the assumptions for this case. Default: those of the invariant
   */
  violate(invariant: Invariant, detail: string, needs: readonly Assumption[] = invariants[invariant]): void {
    const without = needs.filter((assumption) => !this.keeps(assumption));
    const violation = { invariant, at: this.now, detail: this.#plain(detail), without };
    const excused = without.length > 0;
    (excused ? this.excused : this.violations).push(violation);
    this.trace(() => `${excused ? "excused" : "VIOLATED"} ${invariant}: ${detail}`);
  }
}

/** See {@link World.ownName}. */
const ownNames = /\b(r\d+)\.\d+\b/g;

const checkedNames = new Map(
  Object.keys(invariants).map((invariant) => [invariant, `checked: ${invariant}`]),
);

/** The name under which the checks of an invariant are counted. */
export function checkedName(invariant: Invariant): string {
  return checkedNames.get(invariant)!;
}

/** Draws the assumptions that a world drops. Most worlds drop none. */
export function drawDropped(draw: Draw): Assumption[] {
  if (draw.chance(0.7)) return [];
  const dropped = draw.pick(assumptions);
  // A server that comes back too early must have lost its memory as well.
  if (dropped === "absence after memory loss") return ["kept memory", dropped];
  // Fences survive the loss of memory as long as the clocks agree.
  return dropped === "kept memory" && draw.chance(0.5) ? [dropped, "agreeing clocks"] : [dropped];
}
