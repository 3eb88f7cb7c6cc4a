import { type RedlockError, secondsHint } from "../errors/errors.ts";
import type { Runtime } from "../runtime/runtime.ts";

/** The ms by which Redis rounds a ttl up or down. It is the constant part of the drift. */
const expiryPrecision = 2;

/** Longest time (ms) for which an expiry can go unnoticed after a freeze. */
const expiryCheckInterval = 1_000;

/** The part of a ttl that may be relied on: without the drift, because the endpoint's clock may run faster. */
export function validityOf({ driftFactor }: { readonly driftFactor: number }, ttl: number): number {
  return ttl - (ttl * driftFactor + expiryPrecision);
}

/** The parts of a {@link Validity}. */
export interface ValidityOptions {
  readonly runtime: Runtime;
  readonly driftFactor: number;
  /** ms since before the request that granted it. */
  readonly elapsed: () => number;
  readonly ttl: number;
  /** Makes the error that the signal aborts with. */
  readonly lostError: (why: string) => RedlockError;
  readonly onLost: (why: string) => void;
}

/**
 * How long a holder may rely on its lock, and the local alarm for the end. The alarm needs no answer from an
 * endpoint: it goes off even if every request hangs.
 */
export class Validity {
  /** Called when it is extended, lost or released. */
  onChange: (() => void) | undefined;
  /** Whether it was given back, so that it cannot be lost any more. Set by {@link end}. */
  released = false;
  /** What ends it, for the error, if that is something else than the ttl. Until it is extended. */
  endsBy: string | undefined;
  readonly #options: ValidityOptions;
  #elapsed: () => number;
  #ttl: number;
  #loss: RedlockError | undefined;
  #controller: AbortController | undefined;
  #cancelAlarm: (() => void) | undefined;

  constructor(options: ValidityOptions) {
    this.#options = options;
    this.#elapsed = options.elapsed;
    this.#ttl = options.ttl;
  }

  /** The part of a ttl that may be relied on. */
  budgetOf(ttl: number): number {
    return validityOf(this.#options, ttl);
  }

  /** ms of validity that remain. ≤ 0 once it has ended. */
  remaining(): number {
    return this.#loss || this.released ? 0 : this.budgetOf(this.#ttl) - this.#elapsed();
  }

  /** The error it was lost with. Checks the clock first. */
  get loss(): RedlockError | undefined {
    if (!this.released && this.remaining() <= 0) this.#expire();
    return this.#loss;
  }

  /** Aborts with the loss. The clock is watched from the first use on. */
  get signal(): AbortSignal {
    const { loss } = this;
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (loss) this.#controller.abort(loss);
      else this.watch();
    }
    return this.#controller.signal;
  }

  /** Goes on for another `ttl`, counted from before the request that extended it. */
  extend(ttl: number, elapsed: () => number): void {
    this.#ttl = ttl;
    this.endsBy = undefined;
    this.#elapsed = elapsed;
    if (this.#cancelAlarm) this.watch();
    this.onChange?.();
  }

  /** Marks it as lost: someone else may hold it. Returns the error, even if the lock was released: then nothing changes. */
  lose(why: string): RedlockError {
    const { lostError, onLost } = this.#options;
    if (this.released) return lostError(why);
    if (!this.#loss) {
      this.#loss = lostError(why);
      this.#stopWatching();
      this.#controller?.abort(this.#loss);
      onLost(why);
    }
    return this.#loss;
  }

  /** Ends it without a loss: no alarm follows. */
  end(): void {
    this.released = true;
    this.#stopWatching();
  }

  /** Watches the clock for the end. Only for the signal does that keep the process alive. */
  watch(): void {
    this.#cancelAlarm?.();
    this.#cancelAlarm = undefined;
    const left = this.remaining();
    if (left <= 0) {
      this.#expire();
      return;
    }
    // The timer only checks again: it may fire early, and the validity may have been extended. It fires at least once an
    // interval, because a timer stands still while the platform freezes the process, and a ttl does not.
    const delay = Math.min(Math.ceil(left), expiryCheckInterval);
    this.#cancelAlarm = this.#options.runtime.timer(delay, () => this.watch(), !!this.#controller);
  }

  /** Loses it because its time is over. */
  #expire(): void {
    const { endsBy = `ttl ${this.#ttl} ms${secondsHint(this.#ttl)}` } = this;
    this.lose(`its validity ended (${endsBy})`);
  }

  #stopWatching(): void {
    this.#cancelAlarm?.();
    this.#cancelAlarm = undefined;
    this.onChange?.();
  }
}
