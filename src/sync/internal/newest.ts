import { unlessAborted } from "../../abort.ts";
import type { Ask } from "../../endpoints/ask.ts";
import { LockLostError, QuorumError, secondsHint } from "../../errors.ts";
import type { Settings } from "../../lock/options.ts";
import { retry } from "../../quorum/retry.ts";
import { type Round, runRound } from "../../quorum/round.ts";
import { undoQuietly, unlessRefused } from "../../quorum/undo.ts";
import { type CellAnswer, end } from "../../redis/cell.ts";
import { keyOf } from "../../redis/keys.ts";
import { runScript, unexpectedReply } from "../../redis/script.ts";
import { keepAlive, randomToken, stopwatch } from "../../runtime.ts";
import { newestScript } from "./newest.lua.ts";
import { itemsOf } from "./reply.ts";

// The calls of one name, of which the newest counts: a key at which the greatest text stays.

/** What a call is announced with. */
export interface NewestContext {
  readonly settings: Settings;
  /** What is called: the kind of the key, and for errors. */
  readonly kind: "debounce" | "singleton";
  readonly name: string;
  /** How long the announcement is kept, in ms. */
  readonly ttl: number;
  /** Ends the waiting for the first announcement. */
  readonly signal: AbortSignal | undefined;
}

/** One call, and whether it is the newest of its name. */
export class NewestCall {
  /** Random; names the call. */
  readonly id: string;
  readonly #context: NewestContext;
  readonly #key: string;
  /** The place of the call among the others; at first the time of the clock. */
  #sequence: number;
  /** The round that announced it last. */
  #round: Round<CellAnswer> | undefined;
  /** ms since before the last round that has shown that this call is the newest. */
  #sinceNewest = () => 0;
  #newer: string | undefined;

  constructor(context: NewestContext) {
    const { settings, kind, name } = context;
    this.id = randomToken(settings.runtime);
    this.#context = context;
    this.#key = keyOf(settings.prefix, kind, name);
    this.#sequence = Math.floor(settings.runtime.now());
  }

  /** The `id` of a newer call, once {@link isNewest} has seen one. */
  get newer(): string | undefined {
    return this.#newer;
  }

  /** ms for which a newer call cannot have come and expired. */
  remaining(): number {
    const { ttl, settings } = this.#context;
    return ttl * (1 - settings.driftFactor) - 2 - this.#sinceNewest();
  }

  /**
   * Announces the call as later than all that a quorum has, in `wait` ms at most.
   *
   * @param limit ms until the announcement is of no use any more. Default: it always is
   * @throws QuorumError when too few endpoints answered, or too late
   */
  async announce(wait: number, limit: number = Infinity): Promise<void> {
    const { settings, signal, kind, name } = this.#context;
    const waited = stopwatch(settings.runtime);
    const send = () => this.#send(Math.min(wait, limit) - waited(), signal);
    for (let later = await send(); later; later = await send()) {
      // A later sequence number is of an earlier call, whatever the clocks say: it was there before this one.
      this.#sequence = Math.max(...later.map(sequenceIn)) + 1;
    }
    if (waited() >= limit) throw new QuorumError(kind, [name], this.#round!.votes(), { late: true });
    this.#sinceNewest = this.#round!.elapsed;
  }

  /**
   * Whether no newer call has come. It announces the same call once more: a quorum grants that as long as no quorum has a
   * newer one. To read the key would not do: what a call that has failed since left at a minority would look newer, and
   * nobody would run. An announcement can be repeated when an answer is lost.
   *
   * @param wait ms for which it is tried again when too few endpoints answer
   * @throws LockLostError when newer calls may have come and expired, while the process was frozen
   */
  async isNewest(wait: number, signal?: AbortSignal): Promise<boolean> {
    const later = await this.#send(wait, signal);
    if (later) {
      // The id follows a letter and 16 digits.
      this.#newer ??= later.sort().pop()!.slice(17);
      return false;
    }
    if (this.remaining() <= 0) {
      const { name, ttl } = this.#context;
      throw new LockLostError([name], `newer calls may have come and gone${secondsHint(ttl)}`);
    }
    this.#sinceNewest = this.#round!.elapsed;
    return true;
  }

  /** Removes the announcement; the call before it is not restored. */
  async withdraw(): Promise<void> {
    const { settings, signal } = this.#context;
    // It was aborted before it was announced.
    if (!this.#round) return;
    const own = { keys: [this.#key], value: this.#text() };
    const release = unlessRefused((call) => end(call, own));
    const rolledBack = undoQuietly(settings, this.#round.calls, release).done;
    if (!keepAlive(settings, rolledBack)) await unlessAborted(rolledBack, signal);
  }

  /**
   * Announces the call until a quorum has answered, for `wait` ms at most.
   *
   * @returns undefined when it is the newest at a quorum; else the later calls that the endpoints have
   */
  #send(wait: number, signal: AbortSignal | undefined): Promise<string[] | undefined> {
    const { settings, kind, name, ttl } = this.#context;
    const text = this.#text();
    const { runtime, backoff } = settings;
    return retry({ runtime, backoff, wait }, { signal }, async () => {
      const round = runRound(settings, (call) => announceOne(call, this.#key, text, ttl));
      this.#round = round;
      const result = await unlessAborted(round.result, signal);
      if (result === "granted") return { value: undefined };
      if (result === "refused") return { value: round.answers().flatMap(({ other }) => other ?? []) };
      return {
        next: "pause",
        votes: round.votes(),
        end() {
          throw new QuorumError(kind, [name], round.votes());
        },
      };
    });
  }

  /** The call as it is stored in Redis. The later one is the greater text; the id decides if the sequence is equal. */
  #text(): string {
    return `d${String(this.#sequence).padStart(16, "0")}${this.id}`;
  }
}

async function announceOne(call: Ask, key: string, text: string, ttl: number): Promise<CellAnswer> {
  const [echo, other] = itemsOf(await runScript(call, newestScript, [key], [text, ttl]));
  if (echo === text) return { outcome: "granted" };
  if (echo === 0 && sequenceIn(other)) return { outcome: "held", other: String(other) };
  throw unexpectedReply();
}

/** The sequence number of a stored call; 0: it is none. */
function sequenceIn(text: unknown): number {
  const sequence = Number(/^d(\d{16})t[0-9a-f]{32}$/.exec(String(text))?.[1] ?? 0);
  return sequence < Number.MAX_SAFE_INTEGER ? sequence : 0;
}
