import { isRedlockError, type RedlockError } from "../errors.ts";
import { type Backoff, pauses } from "../quorum/backoff.ts";
import type { Runtime } from "../runtime.ts";

/** What Redis adds to and takes from a ttl by rounding to whole ms; the constant part of the drift. */
const expiryPrecision = 2;

/** How long, in ms, a process that was frozen may not know that its validity ended meanwhile. */
const expiryCheckInterval = 1_000;

/** What auto-extension goes by. */
export interface AutoExtension {
  /** ms to ask for each time; may change when the holder extends by hand. */
  readonly ttl: () => number;
  /** Bound on the whole time held, in ms. */
  readonly maxHold: number;
  readonly backoff: Backoff;
}

/**
 * How long a holder may still rely on what it holds, and the local alarm for the moment when that ends. It
 * needs no answer from anybody: the alarm goes off even if every request hangs.
 */
export class Validity {
  readonly #runtime: Runtime;
  readonly #driftFactor: number;
  /** Time held, and the bound on it. */
  readonly #age: () => number;
  readonly #limit: number;
  /** Makes the error that the signal aborts with. */
  readonly #lostError: (why: string) => RedlockError;
  readonly #onLost: (why: string) => void;
  #elapsed: () => number;
  #budget: number;
  #loss: RedlockError | undefined;
  #released = false;
  #controller: AbortController | undefined;
  #cancelAlarm: (() => void) | undefined;
  /** Ends the pause of auto-extension. */
  #wake: (() => void) | undefined;

  constructor(options: {
    readonly runtime: Runtime;
    readonly driftFactor: number;
    /** Time since before the request that granted it. */
    readonly elapsed: () => number;
    readonly ttl: number;
    /** ms that are left of it at most, when part of it is over already. Default: all of it. */
    readonly left?: number | undefined;
    /** Bound on the time held, in ms, e.g. what the platform leaves the code. */
    readonly limit: number;
    readonly lostError: (why: string) => RedlockError;
    readonly onLost: (why: string) => void;
  }) {
    this.#runtime = options.runtime;
    this.#driftFactor = options.driftFactor;
    this.#age = options.elapsed;
    this.#limit = options.limit;
    this.#lostError = options.lostError;
    this.#onLost = options.onLost;
    this.#elapsed = options.elapsed;
    this.#budget = Math.min(this.budgetOf(options.ttl), options.left ?? Infinity);
  }

  /** What of a ttl may be relied on, drift taken off: the endpoint's clock may run faster than ours. */
  budgetOf(ttl: number): number {
    return ttl - (ttl * this.#driftFactor + expiryPrecision);
  }

  /** ms left; ≤ 0 once it is over. */
  remaining(): number {
    if (this.#loss || this.#released) return 0;
    return Math.min(this.#budget - this.#elapsed(), this.#limit - this.#age());
  }

  /** The error it was lost with; looks at the clock first. */
  get loss(): RedlockError | undefined {
    if (!this.#released && this.remaining() <= 0) this.lose("its validity ended");
    return this.#loss;
  }

  /** Whether it was given back. */
  get released(): boolean {
    return this.#released;
  }

  /** Aborts with the loss when it is lost. Begins to watch the clock when first asked for. */
  get signal(): AbortSignal {
    const { loss } = this;
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (loss) this.#controller.abort(loss);
      else this.#watch();
    }
    return this.#controller.signal;
  }

  /** Goes on for another `ttl`, counted from before the request that renewed it. */
  renew(ttl: number, elapsed: () => number): void {
    this.#budget = this.budgetOf(ttl);
    this.#elapsed = elapsed;
    if (this.#controller) this.#watch();
    this.#wake?.(); // the next extension may be due sooner
  }

  /** It is gone: someone else may have it. */
  lose(why: string): RedlockError {
    if (this.#released) return this.#lostError(why);
    if (!this.#loss) {
      this.#loss = this.#lostError(why);
      this.#end();
      this.#controller?.abort(this.#loss);
      this.#onLost(why);
    }
    return this.#loss;
  }

  /** It is given back: no alarm any more. */
  release(): void {
    this.#released = true;
    this.#end();
  }

  /**
   * Calls `extend` at half of the ttl, again and again, until it is given back, lost or held for as long as
   * `maxHold` and its limit allow. A failed try is repeated after a pause while validity is left; a loss ends
   * it at once.
   */
  async autoExtend(options: AutoExtension, extend: (ttl: number) => Promise<unknown>): Promise<void> {
    void this.signal; // from now on the end is noticed even if nobody asks
    let isLate = false;
    for (let next = pauses(options.backoff, this.#runtime), pause = 0; ; ) {
      const due = Math.max(this.remaining() - this.budgetOf(options.ttl()) / 2, 1);
      const woken = await this.#rest(pause || due);
      if (this.#released || this.loss) return;
      if (woken) {
        pause = 0;
        isLate = false;
        continue;
      }
      // The last extension is cut so that nothing is held for longer than that.
      const whole = options.ttl();
      const ttl = Math.floor(Math.min(whole, Math.min(options.maxHold, this.#limit) - this.#age()));
      if (this.budgetOf(ttl) <= this.remaining()) {
        if (ttl < whole) return;
        continue; // it has just been extended by hand
      }
      try {
        await extend(ttl);
        if (ttl < whole) return;
        pause = 0;
        isLate = false;
        next = pauses(options.backoff, this.#runtime);
      } catch (error) {
        if (!isRedlockError(error) || error.code !== "NO_QUORUM") return;
        try {
          pause = next();
          const left = this.remaining();
          // Where the pause would outlast the validity, one more try comes half way, and then none.
          if (pause >= left) {
            pause = isLate ? left + 1 : left / 2;
            isLate = true;
          }
        } catch {
          return; // the user's backoff failed; nobody waits for this promise, and the alarm tells of the end
        }
      }
    }
  }

  #watch(): void {
    this.#cancelAlarm?.();
    this.#cancelAlarm = undefined;
    if (this.#released) return;
    const left = this.remaining();
    if (left <= 0) this.lose("its validity ended");
    // A timer may fire early, and what it waits for may have been renewed: it only makes us look again. Once in
    // a while at least, because a timer stands still while the platform freezes the process, and a ttl does not.
    else
      this.#cancelAlarm = this.#runtime.timer(Math.min(Math.ceil(left), expiryCheckInterval), () =>
        this.#watch(),
      );
  }

  /** Pauses for `ms`, or until woken; tells which. */
  #rest(ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel = this.#runtime.timer(ms, () => resolve(false));
      this.#wake = () => {
        cancel();
        resolve(true);
      };
    });
  }

  #end(): void {
    this.#cancelAlarm?.();
    this.#cancelAlarm = undefined;
    this.#wake?.();
  }
}
