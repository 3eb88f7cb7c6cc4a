import type { Runtime } from "../../../src/index.ts";
import type { Draw } from "../draw.ts";
import type { Scheduler } from "./scheduler.ts";

/** The wall-clock time at which every simulation begins: 2023-11-14. */
export const epoch = 1_700_000_000_000;

/** Its wall clock was set, or its monotonic clock stood still. */
type Disturbance = "set" | "frozen";

/**
 * One client process. Its code runs while it is neither paused nor dead, and it has clocks of its own: it is the
 * `Runtime` of the library inside it.
 */
export class Process implements Runtime {
  readonly name: string;
  alive = true;
  /** When it died, in virtual ms; undefined: it lives. */
  diedAt: number | undefined;
  /** ms, by its clocks, for which its present call waits for the answer to each request, at least. */
  timeout = 0;
  /** How often one of its two clocks was set, or stood still. */
  disturbances = 0;
  /** How fast both clocks run; 1 is exact. */
  readonly rate: number;
  readonly #scheduler: Scheduler;
  readonly #draw: Draw;
  /** Callbacks that became due while it was paused. */
  #inbox: (() => void)[] = [];
  #paused = false;
  /** Since when the monotonic clock stands still, too; and for how long it stood still before. */
  #frozenAt: number | undefined;
  #frozenFor = 0;
  /** Since when it has been paused, and for how long in total before. */
  #pausedAt = 0;
  #pausedFor = 0;
  #wallOffset = 0;
  /** What has happened to one of its clocks since the library read both. */
  #unread: Disturbance | undefined;
  /** When the library last read each, in virtual ms. */
  #wallReadAt = Number.NaN;
  #monotonicReadAt = Number.NaN;

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

  /** ms of true time for which it has been paused so far. A call may take that much longer. */
  get pausedFor(): number {
    return this.#pausedFor + (this.#paused ? this.#scheduler.now - this.#pausedAt : 0);
  }

  /** The library reads its wall clock. */
  now(): number {
    this.#wallReadAt = this.#scheduler.now;
    this.#noteRead();
    return this.wallClock();
  }

  /** The library reads its monotonic clock. */
  monotonic(): number {
    this.#monotonicReadAt = this.#scheduler.now;
    this.#noteRead();
    return this.#monotonicClock();
  }

  /** What its wall clock shows, in ms since 1970. */
  wallClock(): number {
    return epoch + this.#wallOffset + Math.floor(this.#scheduler.now * this.rate);
  }

  #monotonicClock(): number {
    return ((this.#frozenAt ?? this.#scheduler.now) - this.#frozenFor) * this.rate;
  }

  #noteRead(): void {
    if (this.#wallReadAt === this.#monotonicReadAt) this.#unread = undefined;
  }

  #disturb(how: Disturbance): void {
    this.disturbances += 1;
    this.#unread = how;
    this.#wallReadAt = Number.NaN;
    this.#monotonicReadAt = Number.NaN;
  }

  /** Whether one of its clocks goes on in spite of a disturbance: since the library read both, the other one did. */
  goesOnIf(how: Disturbance): boolean {
    return !this.frozen && (this.#unread === undefined || this.#unread === how);
  }

  /** Sets its wall clock before anybody has read it: it is so many ms ahead of the world's. */
  startClock(ms: number): void {
    this.#wallOffset = Math.floor(ms);
  }

  /** Moves its wall clock by so many ms. */
  setClock(ms: number): void {
    this.#wallOffset += Math.floor(ms);
    this.#disturb("set");
  }

  /** Fires up to 2 ms late or 1 ms early, as timers do; not while the process is paused. */
  timer(ms: number, callback: () => void, keepsAlive = true): () => void {
    // With these, every hold would be watched for the sake of the hook; most users have none.
    if (!keepsAlive) return () => undefined;
    const due = this.#monotonicClock() + Math.max(0, ms + this.#draw.between(-1, 2));
    let cancel: (() => void) | undefined;
    let cancelled = false;
    const fire = () => {
      if (cancelled) return;
      const remaining = due - this.#monotonicClock();
      // The monotonic clock may have stood still meanwhile.
      if (remaining > 0.001) arm(remaining);
      else callback();
    };
    const arm = (remaining: number) => {
      cancel = this.#scheduler.at(this.#scheduler.now + remaining / this.rate, () => this.deliver(fire));
    };
    arm(due - this.#monotonicClock());
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

  /** Calls `what` as soon as the process runs. */
  deliver(what: () => void): void {
    if (!this.alive) return;
    if (this.#paused) this.#inbox.push(what);
    else what();
  }

  /** Stops the process. `frozen`: its monotonic clock stands still as well. */
  pause(frozen: boolean): void {
    if (this.#paused || !this.alive) return;
    this.#paused = true;
    this.#pausedAt = this.#scheduler.now;
    if (!frozen) return;
    this.#frozenAt = this.#scheduler.now;
    this.#disturb("frozen");
  }

  /** Lets the process go on. Callbacks that became due meanwhile run in a random order, one at a time. */
  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#pausedFor += this.#scheduler.now - this.#pausedAt;
    if (this.#frozenAt !== undefined) {
      this.#frozenFor += this.#scheduler.now - this.#frozenAt;
      // What was read meanwhile was read from a clock that stood still.
      this.#unread = "frozen";
    }
    this.#frozenAt = undefined;
    const inbox = this.#inbox;
    this.#inbox = [];
    while (inbox.length > 0) {
      const [next] = inbox.splice(this.#draw.integer(0, inbox.length - 1), 1);
      // Scheduled, so that all consequences of one come before the next.
      this.#scheduler.at(this.#scheduler.now, () => this.deliver(next!));
    }
  }

  /** Ends the process at once. Requests under way go on. */
  kill(): void {
    this.alive = false;
    this.diedAt ??= this.#scheduler.now;
    this.#inbox = [];
  }
}
