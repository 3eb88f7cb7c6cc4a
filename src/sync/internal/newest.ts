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
import { keepAlive, randomToken } from "../../runtime.ts";
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
   * Announces the call as later than all that a quorum has, in `remainingWait()` ms at most.
   *
   * @param untilDeadline ms until the announcement is of no use any more. Default: it always is
   * @throws QuorumError when too few endpoints answered, or too late
   */
  async announce(remainingWait: () => number, untilDeadline: () => number = () => Infinity): Promise<void> {
    const { signal, kind, name } = this.#context;
    let later = await this.#send(remainingWait(), signal);
    while (later) {
      // A later sequence number is of an earlier call, whatever the clocks say: it was there before this one.
      this.#sequence = Math.max(...later.map(sequenceIn)) + 1;
      later = await this.#send(remainingWait(), signal);
    }
    if (untilDeadline() <= 0) throw new QuorumError(kind, [name], this.#round!.votes(), { late: true });
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
      this.#newer ??= idOf(later.sort().pop()!);
      return false;
    }
    if (this.remaining() <= 0) {
      throw new LockLostError(
        [this.#context.name],
        `newer calls may have come and gone${secondsHint(this.#context.ttl)}`,
      );
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
    const rolledBack = undoQuietly(
      settings,
      this.#round.calls,
      unlessRefused((call) => end(call, own)),
    ).done;
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
      if (result === "refused") return { value: laterCalls(round) };
      return {
        next: "pause",
        votes: round.votes(),
        end() {
          throw new QuorumError(kind, [name], round.votes());
        },
      };
    });
  }

  /** The call as it is stored in Redis. The later one is the greater text; the id decides where the sequence is equal. */
  #text(): string {
    return `d${String(this.#sequence).padStart(16, "0")}${this.id}`;
  }
}

async function announceOne(call: Ask, key: string, text: string, ttl: number): Promise<CellAnswer> {
  const reply = await runScript(call, newestScript, [key], [text, ttl]);
  const [echo, other] = itemsOf(reply);
  if (echo === text) return { outcome: "granted" };
  if (echo === 0 && sequenceIn(other)) return { outcome: "held", other: String(other) };
  throw unexpectedReply();
}

/** The later calls that endpoints have returned. */
function laterCalls(round: Round<CellAnswer>): string[] {
  return round.answers().flatMap(({ other }) => other ?? []);
}

function idOf(text: string): string {
  return text.slice(17);
}

/** The sequence number of a stored call; 0 where it is none. */
function sequenceIn(text: unknown): number {
  const sequence = Number(/^d(\d{16})t[0-9a-f]{32}$/.exec(String(text))?.[1] ?? 0);
  return sequence < Number.MAX_SAFE_INTEGER ? sequence : 0;
}
