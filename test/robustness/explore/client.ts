import { type Runtime, stopwatch } from "../../../src/runtime.ts";
import { intern } from "./intern.ts";

/** The wall-clock time at which every world begins: 2023-11-14. */
export const epoch = 1_700_000_000_000;

/** A timer of a client. */
export interface Timer {
  /** When it is due, in ms by the client's monotonic clock. */
  due: number;
  readonly serial: number;
  readonly callback: () => void;
}

/**
 * One client process: the `Runtime` of the library inside it. It draws nothing at random, so what its code does depends
 * only on what it has received, in which order and at which times: its history.
 */
export class Client implements Runtime {
  readonly index: number;
  readonly name: string;
  readonly timers = new Set<Timer>();
  /** The number of everything that it has received so far: see {@link intern}. */
  history = 0;
  /** Its controller of the call that may be aborted now. */
  abortable: AbortController | undefined;
  /** ms for which its present call waits for the answer to each request. */
  timeout = 0;
  /** How many messages it has sent. */
  sent = 0;
  /** When its clocks were last set, stood still, or went on, in ms; undefined: never. */
  disturbed: number | undefined;
  readonly #time: () => number;
  #serial = 0;
  #tokens = 0;
  #frozenAt: number | undefined;
  #frozenFor = 0;
  #wallOffset: number;

  /**
   * @param time the virtual time in ms
   * @param ahead by how many ms its wall clock is ahead
   */
  constructor(index: number, time: () => number, ahead: number) {
    this.index = index;
    this.#wallOffset = ahead;
    this.name = `p${index}`;
    this.#time = time;
  }

  get frozen(): boolean {
    return this.#frozenAt !== undefined;
  }

  /** ms for which it has stood still so far. */
  get frozenFor(): number {
    return this.#frozenFor + (this.#frozenAt === undefined ? 0 : this.#time() - this.#frozenAt);
  }

  now(): number {
    return epoch + this.#wallOffset + Math.floor(this.#time());
  }

  /** Stands still while it is frozen. */
  monotonic(): number {
    return this.#time() - this.frozenFor;
  }

  timer(ms: number, callback: () => void): () => void {
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
  random(): number {
    return this.index % 2 ? 0.75 : 0.25;
  }

  /** No two tokens are the same. */
  randomBytes(bytes: Uint8Array): void {
    this.#tokens += 1;
    bytes.fill(0);
    bytes.set([this.index + 1, this.#tokens]);
  }

  /** It receives something: a reply, a timer, an abort. */
  receive(what: string): void {
    this.history = intern(`${this.history} ${this.#time()} ${what}`);
  }

  /** Freezes it, or lets it go on. The library reads both clocks around each change: see "a clock that goes on". */
  freeze(): void {
    stopwatch(this);
    this.#frozenAt = this.#time();
    this.#disturb("frozen");
  }

  thaw(): void {
    if (this.#frozenAt === undefined) return;
    this.#frozenFor += this.#time() - this.#frozenAt;
    this.#frozenAt = undefined;
    stopwatch(this);
    this.#disturb("thawed");
  }

  /** Moves its wall clock by so many ms. */
  setClock(ms: number): void {
    this.#wallOffset += ms;
    stopwatch(this);
    this.#disturb("clock set");
  }

  #disturb(how: string): void {
    this.disturbed = this.#time();
    this.receive(how);
  }
}
