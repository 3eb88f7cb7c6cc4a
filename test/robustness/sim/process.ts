import type { Runtime } from "../../../src/runtime.ts";
import type { Draw } from "./draw.ts";
import type { Scheduler } from "./scheduler.ts";

/** 2023-11-14: what every wall clock says when a simulation begins, give or take its own error. */
export const epoch = 1_700_000_000_000;

/**
 * One client process: code that runs while it is neither paused nor dead, with clocks of its own. It is the
 * `Runtime` of the library inside it.
 */
export class Process implements Runtime {
  readonly name: string;
  alive = true;
  /** ms, by its clocks, for which the call that it makes at present hears every request at least. */
  timeout = 0;
  /** How often one of its two clocks was set, or stood still. */
  disturbances = 0;
  /** How fast both clocks run; 1 is right. */
  readonly rate: number;
  readonly #scheduler: Scheduler;
  readonly #draw: Draw;
  /** What arrived while it was paused. */
  #inbox: (() => void)[] = [];
  #paused = false;
  /** Since when the monotonic clock stands still, too, and for how long it did before. */
  #frozenAt: number | undefined;
  #frozenFor = 0;
  /** How long it was paused in all. */
  #pausedAt = 0;
  #pausedFor = 0;
  #wallOffset = 0;

  constructor(name: string, scheduler: Scheduler, draw: Draw, rate: number) {
    this.name = name;
    this.rate = rate;
    this.#scheduler = scheduler;
    this.#draw = draw;
  }

  get running(): boolean {
    return this.alive && !this.#paused;
  }

  /** Whether its monotonic clock stands still. */
  get frozen(): boolean {
    return this.#frozenAt !== undefined;
  }

  /** ms, in true time, for which it has been paused so far: what a call may take longer. */
  get pausedFor(): number {
    return this.#pausedFor + (this.#paused ? this.#scheduler.now - this.#pausedAt : 0);
  }

  now(): number {
    return epoch + this.#wallOffset + Math.floor(this.#scheduler.now * this.rate);
  }

  /** Sets its wall clock by so many ms. */
  setClock(ms: number): void {
    this.#wallOffset += Math.floor(ms);
    this.disturbances += 1;
  }

  monotonic(): number {
    return ((this.#frozenAt ?? this.#scheduler.now) - this.#frozenFor) * this.rate;
  }

  /** Fires a little late, as timers do, sometimes up to 1 ms early; not while it is paused. */
  timer(ms: number, callback: () => void): () => void {
    const due = this.monotonic() + Math.max(0, ms + this.#draw.between(-1, 2));
    let cancel: (() => void) | undefined;
    let cancelled = false;
    const fire = () => {
      if (cancelled) return;
      const left = due - this.monotonic();
      // A clock that stood still meanwhile has not come as far.
      if (left > 0.001) arm(left);
      else callback();
    };
    const arm = (left: number) => {
      cancel = this.#scheduler.at(this.#scheduler.now + left / this.rate, () => this.deliver(fire));
    };
    arm(due - this.monotonic());
    return () => {
      cancelled = true;
      cancel?.();
    };
  }

  random(): number {
    return this.#draw.fraction();
  }

  randomBytes(bytes: Uint8Array): void {
    for (let index = 0; index < bytes.length; index += 1) bytes[index] = this.#draw.integer(0, 255);
  }

  /** Lets the process see something, as soon as it runs. */
  deliver(what: () => void): void {
    if (!this.alive) return;
    if (this.#paused) this.#inbox.push(what);
    else what();
  }

  /** Stops it where it is. Frozen, its monotonic clock stands still as well. */
  pause(frozen: boolean): void {
    if (this.#paused || !this.alive) return;
    this.#paused = true;
    this.#pausedAt = this.#scheduler.now;
    if (!frozen) return;
    this.#frozenAt = this.#scheduler.now;
    this.disturbances += 1;
  }

  /** Goes on; what has come meanwhile arrives in an order of its own, one at a time. */
  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#pausedFor += this.#scheduler.now - this.#pausedAt;
    if (this.#frozenAt !== undefined) this.#frozenFor += this.#scheduler.now - this.#frozenAt;
    this.#frozenAt = undefined;
    const inbox = this.#inbox;
    this.#inbox = [];
    while (inbox.length > 0) {
      const [next] = inbox.splice(this.#draw.integer(0, inbox.length - 1), 1);
      // Scheduled, so that what one leads to is over before the next.
      this.#scheduler.at(this.#scheduler.now, () => this.deliver(next!));
    }
  }

  /** Ends it at once. Requests under way go on. */
  kill(): void {
    this.alive = false;
    this.#inbox = [];
  }
}
