import { LockLostError, QuorumError, secondsHint } from "../../errors/errors.ts";
import type { Settings } from "../../lock/options.ts";
import type { Round } from "../../quorum/round.ts";
import { undoQuietly, unlessRefused } from "../../quorum/undo.ts";
import { unlessAborted } from "../../runtime/abort.ts";
import { keepAlive, randomToken, stopwatch } from "../../runtime/runtime.ts";
import { type ArrivalAnswer, generation, levelOf, poll, queryEndpoint, runOf } from "./arrivals.ts";

// A call is a generation without arrivals.

export interface NewestContext {
  readonly settings: Settings;
  readonly kind: "debounce" | "singleton";
  readonly name: string;
  /** In ms. */
  readonly ttl: number;
  /** Ends the waiting for the first announcement. */
  readonly signal: AbortSignal | undefined;
}

export class NewestCall {
  /** Random. */
  readonly id: string;
  readonly #context: NewestContext;
  /** At first the time of the clock. */
  #sequence: number;
  #round: Round<ArrivalAnswer> | undefined;
  /** ms since before the last round that has shown that this call is the newest. */
  #sinceNewest = () => 0;
  #newer: string | undefined;

  constructor(context: NewestContext) {
    const { runtime } = context.settings;
    this.id = randomToken(runtime);
    // Nobody publishes that a newer call has come.
    this.#context = { ...context, settings: { ...context.settings, ttl: context.ttl, wakeUp: undefined } };
    this.#sequence = Math.floor(runtime.now());
  }

  /** Once {@link isNewest} has seen one. */
  get newer(): string | undefined {
    return this.#newer;
  }

  /** In ms, while a newer call cannot have come and expired. */
  remaining(): number {
    const { ttl, settings } = this.#context;
    return ttl * (1 - settings.driftFactor) - 2 - this.#sinceNewest();
  }

  /**
   * Announces the call as later than all that a quorum has.
   *
   * @param limit ms until the announcement is of no use
   * @throws QuorumError when too few endpoints answered, or too late
   */
  async announce(wait: number, limit: number = Infinity): Promise<void> {
    const { settings, signal, kind, name } = this.#context;
    const waited = stopwatch(settings.runtime);
    const send = () => this.#send(Math.min(wait, limit) - waited(), signal);
    for (let later = await send(); later; later = await send()) {
      // The other call was there before, whatever the clocks say.
      this.#sequence = levelOf(later) + 1;
    }
    if (waited() >= limit) throw new QuorumError(kind, [name], this.#round!.votes(), { late: true });
    this.#sinceNewest = this.#round!.elapsed;
  }

  /**
   * Announces this call once more, which a quorum grants as long as no quorum has a newer one. If it read the key
   * instead, the leftover of a failed call at a minority would look newer, and nobody would run.
   *
   * @throws LockLostError when newer calls may have come and expired, while the process was frozen
   */
  async isNewest(wait: number, signal?: AbortSignal): Promise<boolean> {
    const later = await this.#send(wait, signal);
    if (later) {
      this.#newer ??= runOf(later);
      return false;
    }
    if (this.remaining() <= 0) {
      const { name, ttl } = this.#context;
      throw new LockLostError([name], `newer calls may have come and gone${secondsHint(ttl)}`);
    }
    this.#sinceNewest = this.#round!.elapsed;
    return true;
  }

  /** The call before it is not restored. */
  async withdraw(): Promise<void> {
    const { settings, signal } = this.#context;
    // It was aborted before it was announced.
    if (!this.#round) return;
    const ended = { ...settings, ttl: 0 };
    const release = unlessRefused((call) => queryEndpoint(call, ended, this.#context, { to: this.#text() }));
    const rolledBack = undoQuietly(settings, this.#round.calls, release).done;
    if (!keepAlive(settings, rolledBack)) await unlessAborted(rolledBack, signal);
  }

  /** @returns undefined when it is the newest at a quorum, or else the latest call that any endpoint has */
  #send(wait: number, signal: AbortSignal | undefined): Promise<string | undefined> {
    return poll<string | undefined>({ ...this.#context.settings, wait }, this.#context, {
      first: { to: this.#text() },
      signal,
      began: (round) => {
        this.#round = round;
      },
      next({ result, latest }, query) {
        if (result === "unavailable") return query;
        return { value: result === "granted" ? undefined : latest };
      },
    });
  }

  /** The id decides if the sequence is equal. */
  #text(): string {
    return generation(this.#sequence, this.id);
  }
}
