import { stopwatch } from "../../../src/runtime.ts";
import { Draw } from "../sim/draw.ts";
import { Process } from "../sim/process.ts";
import type { Scheduler } from "../sim/scheduler.ts";
import { intern } from "./intern.ts";

/** Draws what is least: the search decides, and chance nothing. `wanted` is picked wherever it can be. */
export class Choice extends Draw {
  wanted: readonly unknown[] = [];

  constructor() {
    super(0);
  }

  override fraction(): number {
    return 0;
  }

  override between(least: number): number {
    return least;
  }

  override integer(least: number): number {
    return least;
  }

  override chance(probability: number): boolean {
    return probability > 0;
  }

  override pick<Item>(items: readonly Item[]): Item {
    return items.find((item) => this.wanted.includes(item)) ?? items[0]!;
  }

  override fork(): Draw {
    return this;
  }
}

/** A timer of a client. */
export interface Timer {
  /** When it is due, in ms by the client's monotonic clock. */
  readonly due: number;
  readonly serial: number;
  readonly callback: () => void;
}

/**
 * One client process. It draws nothing at random, so what its code does depends only on what it has received, in which
 * order and at which times: its history.
 */
export class Client extends Process {
  readonly index: number;
  readonly timers = new Set<Timer>();
  /** The number of everything that it has received so far: see {@link intern}. */
  history = 0;
  /** Its controller of the call that may be aborted now. */
  abortable: AbortController | undefined;
  /** Whether it frees what others hold: nobody else may, and nobody else is excused. */
  operates = false;
  /** How many messages it has sent. */
  sent = 0;
  readonly #scheduler: Scheduler;
  #serial = 0;
  #tokens = 0;

  /** @param ahead by how many ms its wall clock is ahead */
  constructor(index: number, scheduler: Scheduler, ahead: number) {
    super(`p${index}`, scheduler, new Choice(), 1);
    this.index = index;
    this.#scheduler = scheduler;
    super.setClock(ahead);
    this.disturbances = 0;
  }

  override timer(ms: number, callback: () => void): () => void {
    this.#serial += 1;
    const timer: Timer = { due: this.monotonic() + Math.max(0, ms), serial: this.#serial, callback };
    this.timers.add(timer);
    return () => void this.timers.delete(timer);
  }

  /** The timer that fires next. */
  nextTimer(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.timers) {
      if (!next || timer.due < next.due || (timer.due === next.due && timer.serial < next.serial))
        next = timer;
    }
    return next;
  }

  /** The same for all calls, and different for two clients. */
  override random(): number {
    return this.index % 2 ? 0.75 : 0.25;
  }

  /** No two tokens are the same. */
  override randomBytes(bytes: Uint8Array): void {
    this.#tokens += 1;
    bytes.fill(0);
    bytes.set([this.index + 1, this.#tokens]);
  }

  /** It receives something: a reply, a timer, an abort. */
  receive(what: string): void {
    this.history = intern(`${this.history} ${this.#scheduler.now} ${what}`);
  }

  /** Freezes it, or lets it go on. The library reads both clocks around each change: see "a clock that goes on". */
  freeze(): void {
    stopwatch(this);
    this.pause(true);
    this.receive("frozen");
  }

  thaw(): void {
    this.resume();
    stopwatch(this);
    this.receive("thawed");
  }

  override setClock(ms: number): void {
    super.setClock(ms);
    stopwatch(this);
    this.receive("clock set");
  }
}
