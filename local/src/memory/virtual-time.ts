import type { Runtime } from "redlock-edge";
import { EventQueue } from "./event-queue.ts";
import { seededRandom } from "./seeded-random.ts";

/** Options of {@link VirtualTime}. */
export interface VirtualTimeOptions {
  /** The same seed draws the same random numbers and tokens. Default 1. */
  readonly seed?: number | undefined;
  /** What the wall clock shows at first, in ms since 1970. Default 1 700 000 000 000 (14 November 2023). */
  readonly start?: number | undefined;
}

/** Timers that may fire at one moment: more are an endless loop. */
const mostAtOnce = 10_000;
/** ms of real time in which threads must have computed a hash or a signature. */
const patience = 5_000;

/**
 * A `Runtime` for tests: its time stands still until the test lets it pass, so an hour takes no time, and what is drawn at
 * random is the same in each run. Clients and endpoints of a test share one.
 *
 * Promises are followed before and after each timer. What the platform computes in threads (hashes, signatures) takes real
 * time, which only {@link VirtualTime.settle} waits for.
 *
 * @example
 * const runtime = new VirtualTime();
 * const endpoints = ["a", "b", "c"].map((name) => memoryEndpoint({ name, runtime }));
 * const redlock = new Redlock({ endpoints, runtime });
 * const lock = await redlock.acquire("invoice:42", { ttl: 10_000 });
 * await runtime.advance(10_000);
 * expect(lock.remaining()).toBeLessThanOrEqual(0);
 */
export class VirtualTime implements Runtime {
  /** ms added to the wall clock only: a clock that was set. May be changed at any time. */
  wallOffset = 0;
  /** A number in [0, 1). May be replaced at any time. */
  random: () => number;
  readonly #queue = new EventQueue();
  readonly #start: number;
  /** What the monotonic clock shows while it stands still. */
  #frozenAt: number | undefined;
  /** ms for which it stood still before. */
  #stoodStill = 0;
  #firedAtOnce = 0;

  constructor(options: VirtualTimeOptions = {}) {
    const { seed = 1, start = 1_700_000_000_000 } = options;
    this.#start = start;
    this.random = seededRandom(seed);
  }

  /** ms since it began. */
  get elapsed(): number {
    return this.#queue.now;
  }

  /** How many timers have neither fired nor been cancelled. */
  get pending(): number {
    return this.#queue.pending;
  }

  /** While true, the monotonic clock stands still, as in a process that the platform has frozen. */
  get frozen(): boolean {
    return this.#frozenAt !== undefined;
  }

  set frozen(isFrozen: boolean) {
    this.#stoodStill = this.elapsed - this.monotonic();
    this.#frozenAt = isFrozen ? this.monotonic() : undefined;
  }

  // Functions of its own: they may be replaced, also in a copy, `{ ...time, random: () => 0 }`.

  now = (): number => this.#start + Math.floor(this.elapsed) + this.wallOffset;

  monotonic = (): number => this.#frozenAt ?? this.elapsed - this.#stoodStill;

  timer = (ms: number, callback: () => void): (() => void) =>
    // As platforms do: NaN is no delay at all.
    this.at(this.elapsed + (ms || 0), callback);

  randomBytes = (bytes: Uint8Array): void => {
    for (let index = 0; index < bytes.length; index += 1) bytes[index] = Math.floor(this.random() * 256);
  };

  /** Calls `callback` once, `time` ms after the beginning, or at the next step if that is over. @returns cancels it */
  at(time: number, callback: () => void): () => void {
    return this.#queue.at(time, callback);
  }

  /** Resolves after `ms` of virtual time. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.timer(ms, resolve));
  }

  /** Lets `ms` pass: fires the timers that become due in their order, also those that other timers start. */
  async advance(ms: number): Promise<void> {
    const end = this.elapsed + checkMs(ms);
    do await afterTurns();
    while (this.#fireNext(end));
    this.#queue.now = Math.max(end, this.elapsed);
  }

  /** Lets time pass until the next timer fires. Returns whether there was one, within `limit` ms. */
  async advanceToNext(limit: number = Infinity): Promise<boolean> {
    await afterTurns();
    const hasFired = this.#fireNext(this.elapsed + limit);
    await afterTurns();
    return hasFired;
  }

  /**
   * Lets time pass until a promise settles.
   *
   * @returns what it resolves with
   * @throws what it rejects with, or an Error if it has not settled `limit` ms later
   */
  async settle<Value>(promise: Promise<Value>, limit = 60_000): Promise<Value> {
    const end = this.elapsed + limit;
    let hasSettled = false;
    const note = () => {
      hasSettled = true;
    };
    promise.then(note, note);
    for (let busyAt = performance.now(); ; ) {
      await afterTurns();
      if (hasSettled) return promise;
      if (this.#fireNext(end)) busyAt = performance.now();
      else if (performance.now() - busyAt > patience) {
        throw new Error(`the promise has not settled ${limit} ms later, at ${this.elapsed} ms`);
      }
    }
  }

  #fireNext(until: number): boolean {
    const before = this.elapsed;
    if (!this.#queue.next(until)) return false;
    this.#firedAtOnce = this.elapsed > before ? 1 : this.#firedAtOnce + 1;
    if (this.#firedAtOnce > mostAtOnce) throw new Error(`timers fire on and on at ${before} ms`);
    return true;
  }
}

/** NaN would stop the clock for the rest of the test. */
function checkMs(ms: number): number {
  if (ms >= 0) return ms;
  throw new RangeError(`a time to advance by is a number of ms, such as 3_600_000 for an hour, not ${ms}`);
}

/** A turn of the event loop. Taken now: a test may replace timers by others. */
const { setImmediate: later = afterMessage } = globalThis;

function afterMessage(callback: () => void): void {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    callback();
  };
  port2.postMessage(undefined);
}

/** Turns within which promises and streams that wait for no timer have settled. */
const turns = 3;

async function afterTurns(): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) await new Promise<void>((resolve) => void later(resolve));
}
