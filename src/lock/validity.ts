import { refuseProperty } from "../check/foreign-names.ts";
import { type RedlockError, secondsHint } from "../errors/errors.ts";
import type { Runtime } from "../runtime/runtime.ts";

/** Redis rounds a ttl by so many ms. */
const expiryPrecision = 2;

/** ms for which an expiry can go unnoticed after a freeze. */
const expiryCheckInterval = 1_000;

/** The endpoint's clock may run faster. */
export function validityOf({ driftFactor }: { readonly driftFactor: number }, ttl: number): number {
  return ttl - (ttl * driftFactor + expiryPrecision);
}

export interface ValidityOptions {
  readonly runtime: Runtime;
  readonly driftFactor: number;
  /** ms since before the request that granted it. */
  readonly elapsed: () => number;
  readonly ttl: number;
  readonly lostError: (why: string) => RedlockError;
  readonly onLost: (why: string) => void;
}

/** The local alarm goes off even if every request hangs. */
export class Validity {
  onChange: (() => void) | undefined;
  released = false;
  /** The reason if it is not the ttl. */
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

  budgetOf(ttl: number): number {
    return validityOf(this.#options, ttl);
  }

  remaining(): number {
    return this.#loss || this.released ? 0 : this.budgetOf(this.#ttl) - this.#elapsed();
  }

  get loss(): RedlockError | undefined {
    if (!this.released && this.remaining() <= 0) this.#expire();
    return this.#loss;
  }

  get signal(): AbortSignal {
    const { loss } = this;
    if (!this.#controller) {
      this.#controller = new AbortController();
      refuseProperty("lock.signal", this.#controller.signal, "error", "lock.signal.reason");
      if (loss) this.#controller.abort(loss);
      else this.watch();
    }
    return this.#controller.signal;
  }

  extend(ttl: number, elapsed: () => number): void {
    this.#ttl = ttl;
    this.endsBy = undefined;
    this.#elapsed = elapsed;
    if (this.#cancelAlarm) this.watch();
    this.onChange?.();
  }

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

  end(): void {
    this.released = true;
    this.#stopWatching();
  }

  /** Keeps the process alive only if the signal is in use. */
  watch(): void {
    this.#cancelAlarm?.();
    this.#cancelAlarm = undefined;
    const left = this.remaining();
    if (left <= 0) {
      this.#expire();
      return;
    }
    // A timer may fire early, or after an extension, so it only checks again. It also stands still while the platform
    // freezes the process, so it fires at least once an interval.
    const delay = Math.min(Math.ceil(left), expiryCheckInterval);
    this.#cancelAlarm = this.#options.runtime.timer(delay, () => this.watch(), !!this.#controller);
  }

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
