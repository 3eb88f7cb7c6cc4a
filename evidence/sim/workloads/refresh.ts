import type { RedlockErrorCode } from "../../../src/index.ts";
import { type RefreshedNotWrittenError, refreshOnce } from "../../../src/sync/index.ts";
import { invariants } from "../world/invariants.ts";
import type { Process } from "../world/process.ts";
import type { World } from "../world/world.ts";
import type { Actor, SharedContext } from "./actor.ts";
import { drawOptions } from "./options.ts";
import type { Workload } from "./workload.ts";

const name = "account";

/** A pair of tokens: the number says how often it was refreshed. */
interface Tokens {
  readonly number: number;
  /** Virtual ms. */
  readonly expiresAt: number;
}

/** One use of a refresh token, from the call of `refresh` to the end of `refreshOnce`. */
interface Use {
  readonly process: Process;
  /** How long its process had been paused, and how often its clocks were set, when the call began. */
  readonly pausedBefore: number;
  readonly disturbedBefore: number;
  /** Its hold was lost, or its answer is stored nowhere. */
  isExcused: boolean;
}

/** How one call is made, and what it does to the store and to the authorization server. */
interface Way {
  readonly options: object;
  readonly codes: readonly RedlockErrorCode[];
  readonly bound: number;
  readonly distance: number;
  /** Shares of the requests to the store and the server that fail before or after they are executed. */
  readonly failures: number;
  /** The store takes nothing during this call. */
  readonly isReadonly: boolean;
  readonly life: number;
}

/** Tokens whose refresh token an authorization server accepts once. */
export class RefreshWorkload implements Workload {
  readonly blockingKeys: readonly string[] = ["redlock:lock:*"];
  readonly #world: World;
  readonly #ttl: number;
  /** The store's row, whose writes are compared by their fence. */
  #stored: Tokens = { number: 0, expiresAt: 0 };
  #fence = 0;
  /** By the number of the tokens that were exchanged: the first use. */
  readonly #uses = new Map<number, Use>();
  #issued = 0;
  /** Tokens that were used again, and both uses. */
  readonly #reuses: (readonly [number: number, before: Use, again: Use])[] = [];

  constructor({ world, scenario }: SharedContext) {
    this.#world = world;
    this.#ttl = Math.max(40, scenario.ttl);
  }

  async perform(actor: Actor): Promise<void> {
    const { draw } = actor;
    const ttl = this.#ttl;
    const { timeout, backoff } = drawOptions(actor);
    await this.#refresh(actor, {
      options: { ttl, wait: 3 * ttl, timeout, backoff },
      codes: ["LOCK_HELD", "LOCK_LOST", "NO_QUORUM", "REFRESHED_NOT_WRITTEN"],
      bound: 12 * ttl + 40 * timeout,
      distance: ttl / 4,
      failures: draw.pick([0, 0.1, 0.4]),
      isReadonly: draw.chance(0.15),
      life: draw.between(0.5, 3) * ttl,
    });
  }

  async probe(actor: Actor, bound: number): Promise<void> {
    const world = this.#world;
    // Where counters lost their memory, or clocks disagree, the store may have a larger fence for a while.
    const isTaken = world.keeps("kept memory") && world.keeps("agreeing clocks");
    const way = { bound, distance: 5, failures: 0, isReadonly: false, life: 10 };
    const options = { ttl: 2_000, wait: 10 * bound };
    await this.#refresh(actor, { ...way, options, codes: isTaken ? [] : ["REFRESHED_NOT_WRITTEN"] });
  }

  async #refresh(actor: Actor, way: Way): Promise<void> {
    const { options, codes, bound, ...conditions } = way;
    const { process, redlock, calls } = actor;
    const world = this.#world;
    let use: Use | undefined;
    const outcome = await calls.make(process, {
      counted: "refresh",
      what: `refreshOnce ${JSON.stringify({ ...options, ...conditions })}`,
      bound,
      codes,
      run: () =>
        refreshOnce<Tokens>(redlock, name, {
          ...options,
          maxHold: 20 * this.#ttl,
          onEvent: ({ type }: { readonly type: string }) => {
            if (type === "lost" && use) use.isExcused = true;
          },
          read: () => this.#request(actor, way, () => this.#stored),
          isFresh: ({ expiresAt }) => expiresAt > world.now,
          refresh: (current) => {
            const { pausedFor: pausedBefore, disturbances: disturbedBefore } = process;
            use = { process, pausedBefore, disturbedBefore, isExcused: false };
            return this.#exchange(actor, way, current, use);
          },
          write: (fresh, { fence }) =>
            this.#request(actor, way, () => {
              if (way.isReadonly) throw unavailable;
              return this.#write(fresh, fence);
            }),
        } as Parameters<typeof refreshOnce<Tokens>>[2]),
      isExpected: (error) => error === unavailable || /^write took more than/.test((error as Error).message),
    });
    if ("value" in outcome) return world.count("refresh: returned");
    const { code } = outcome.error as Partial<RefreshedNotWrittenError>;
    // Its error has them, and nobody else.
    if (code === "REFRESHED_NOT_WRITTEN" && use) use.isExcused = true;
  }

  /** A request to the store. It fails before it is executed, or after. */
  async #request<Value>({ draw, sleep }: Actor, way: Way, execute: () => Value): Promise<Value> {
    await sleep(draw.between(0, way.distance));
    if (draw.chance(way.failures / 2)) throw unavailable;
    const value = execute();
    await sleep(draw.between(0, way.distance));
    if (draw.chance(way.failures / 2)) throw unavailable;
    return value;
  }

  #write(fresh: Tokens, fence: number): boolean {
    if (fence <= this.#fence) return false;
    // Of two that refresh at once, the one with the larger fence may have been the first.
    if (this.#reuses.length === 0) {
      this.#world.check(
        "a token is used once",
        fresh.number > this.#stored.number,
        () => `the tokens ${fresh.number} were written over ${this.#stored.number} by a larger fence`,
        [...invariants["a token is used once"], "kept memory"],
      );
    }
    this.#stored = fresh;
    this.#fence = fence;
    return true;
  }

  /** The authorization server exchanges tokens for new ones. */
  async #exchange({ draw, sleep }: Actor, way: Way, { number }: Tokens, use: Use): Promise<Tokens> {
    const world = this.#world;
    await sleep(draw.between(0, way.distance));
    if (draw.chance(way.failures / 4)) throw unavailable;
    const before = this.#uses.get(number);
    if (before) {
      for (const one of [before, use]) one.isExcused ||= isDisturbed(one);
      // A call that has lost its answer may say so only when its release has ended.
      this.#reuses.push([number, before, use]);
    }
    this.#uses.set(number, use);
    this.#issued += 1;
    world.count("refresh: exchanged");
    const fresh = { number: Math.max(this.#issued, number + 1), expiresAt: world.now + way.life };
    this.#issued = fresh.number;
    await sleep(draw.between(0, way.distance));
    if (!draw.chance(way.failures / 4)) return fresh;
    // The answer is lost: no library can know the new tokens.
    use.isExcused = true;
    throw unavailable;
  }

  /** A second use of the same token revokes the login, unless the first one's process could not keep its hold or its answer. */
  checkAtEnd(): void {
    const world = this.#world;
    for (const [number, before, again] of this.#reuses) {
      if (before.isExcused || again.isExcused) world.count("refresh: used twice, as documented");
      else
        world.violate(
          "a token is used once",
          `${again.process.name} used the token ${number} again, after ${before.process.name}`,
        );
    }
    if (this.#uses.size > 0) world.checked("a token is used once");
  }
}

function isDisturbed({ process, pausedBefore, disturbedBefore }: Use): boolean {
  return !process.alive || process.pausedFor > pausedBefore || process.disturbances > disturbedBefore;
}

const unavailable = new Error("the store or the server is not available");
