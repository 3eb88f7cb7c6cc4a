import { entryOf, quorumOf } from "../field.ts";
import { type Assumption, type Invariant, invariants } from "../world/invariants.ts";
import type { Process } from "../world/process.ts";
import type { World } from "../world/world.ts";

/** Something held for a time: a lock by its holder, or a key by the run that has claimed it. Times are virtual ms. */
export interface Hold {
  readonly resources: readonly string[];
  readonly nonce: string;
  /** The nonce of the round that acquired it: all handles of a lock that was handed over have it in common. */
  readonly origin: string;
  readonly process: Process;
  /** ms, by the process's clocks, for which it may be relied on. */
  readonly remaining: () => number;
  /** Whether the holder has been informed of the end; undefined when it does not listen. */
  readonly lossReported: (() => boolean) | undefined;
  /** When the call that got it was made, and when it returned. */
  readonly invoked: number;
  readonly acquired: number;
  readonly fence?: number | undefined;
  /** What its holder has said of itself. */
  readonly note?: string | undefined;
  /** Holds of one group may overlap. */
  readonly group?: string | undefined;
  /** By server: for how many ms of true time it stands there. */
  readonly standing?: (() => readonly number[]) | undefined;
  /** The latest virtual time at which it may be relied on, whatever the endpoints say. Default: there is none. */
  readonly limit?: number;
  readonly extensions: Extensions;
  /** Since when it can no longer be relied on. */
  ended: number | undefined;
  releaseInvoked: number | undefined;
}

/** What checks need to know of a hold's extensions. */
export interface Extensions {
  /** The shortest ttl, in ms, that an extension asked for, and whether a later one asked for more. */
  least: number;
  regrown: boolean;
}

/** What has just been granted. `signal`: what informs the holder of the end, if it listens. */
type Grant = Pick<Hold, "resources" | "nonce" | "process" | "remaining" | "invoked"> &
  Partial<Pick<Hold, "origin" | "fence" | "note" | "group" | "standing" | "limit">> & {
    readonly signal?: AbortSignal | undefined;
  };

// How many ms after the end of its validity the holder must be informed. A timer may be late. Where a clock was set or
// stood still, the timer may depend on the wrong clock; then the library checks once a second.
const tolerance = 4;
const toleranceAfterDisturbance = 1_004;

/** All holds of one kind. Checks that they do not overlap, and that holders are informed of the end in time. */
export class Holds {
  /** All holds there ever were, in the order of their grants. */
  readonly all: Hold[] = [];
  readonly #world: World;
  readonly #invariant: Invariant;
  readonly #current = new Map<string, Set<Hold>>();

  /** @param invariant the invariant that overlapping holds violate */
  constructor(world: World, invariant: Invariant) {
    this.#world = world;
    this.#invariant = invariant;
  }

  /** A holder has just been granted something: validity is left, and nobody else relies on it. */
  grant({ signal, ...grant }: Grant): Hold {
    const { process, resources, nonce, remaining } = grant;
    if (process.running) {
      const what = () => `${process.name} got ${resources} with nothing left`;
      this.#world.check("validity is honest", remaining() > 0, what);
    }
    const hold: Hold = {
      origin: nonce,
      ...grant,
      acquired: this.#world.now,
      lossReported: signal && (() => signal.aborted),
      extensions: { least: Number.POSITIVE_INFINITY, regrown: false },
      ended: undefined,
      releaseInvoked: undefined,
    };
    this.#add(hold);
    return hold;
  }

  #add(hold: Hold): void {
    for (const resource of hold.resources) {
      const excluded = this.all.filter(
        (other) => other.resources.includes(resource) && excludes(hold, other),
      );
      if (excluded.length > 0) this.#world.checked(this.#invariant);
      for (const other of excluded) this.#checkOver(other, hold, resource);
      this.#on(resource).add(hold);
    }
    this.all.push(hold);
    this.#probe(hold);
  }

  /** Nobody relies on a hold any more when another one begins that it excludes. */
  #checkOver(other: Hold, hold: Hold, resource: string): void {
    const { process } = hold;
    if (other.ended !== undefined) return;
    // What an operator frees is not asked of its holder: only fences protect what that writes.
    if (this.#world.freed.has(other.nonce) || this.#world.freed.has(hold.nonce)) return;
    const remaining = other.remaining();
    if (remaining <= 0) return;
    this.#world.violate(
      this.#invariant,
      `${resource} granted to ${process.name} while ${other.process.name} has ${remaining.toFixed(1)} ms`,
      this.#needs(other, invariants[this.#invariant]),
    );
  }

  /** A repeated execution of a shorter extension cuts a longer one. */
  #needs({ extensions }: Hold, needs: readonly Assumption[]): readonly Assumption[] {
    return extensions.regrown ? [...needs, "single execution"] : needs;
  }

  /** Checks all holds of a process again, because its clock has been set. */
  recheck(process: Process): void {
    for (const hold of this.all) {
      if (hold.process !== process || hold.ended !== undefined) continue;
      this.#probe(hold);
    }
  }

  /** Its holder gives a hold back. */
  release(hold: Hold): void {
    hold.releaseInvoked ??= this.#world.now;
    this.end(hold);
  }

  /** Ends a hold: from this moment on its holder no longer relies on it. */
  end(hold: Hold): void {
    if (hold.ended !== undefined) return;
    hold.ended = this.#world.now;
    for (const resource of hold.resources) this.#on(resource).delete(hold);
  }

  /** Ends a hold when its validity ends, however often it was extended. */
  #probe(hold: Hold): void {
    if (hold.ended !== undefined) return;
    const remaining = hold.remaining();
    if (remaining > 0) {
      this.#checkStands(hold, remaining);
      const left = remaining / hold.process.rate;
      // Once more shortly before the end, when most of what could go wrong has.
      const next = this.#world.now + (left > 2 ? left - 1 : left + 0.01);
      this.#world.scheduler.at(next, () => this.#probe(hold));
      return;
    }
    this.end(hold);
    this.#expectLossReported(hold);
  }

  /** A quorum has the value for as long as its holder relies on it, and that ends at the limit. */
  #checkStands(hold: Hold, remaining: number): void {
    const { process, resources, standing, limit = Number.POSITIVE_INFINITY } = hold;
    const world = this.#world;
    const end = world.now + remaining / process.rate;
    if (limit < Number.POSITIVE_INFINITY) {
      const what = () =>
        `${process.name} relies on ${resources} until ${end.toFixed(1)}, not ${limit.toFixed(1)}`;
      // Clocks show whole ms.
      world.check("validity is honest", end <= limit + 1.1, what, ["a clock that goes on"]);
    }
    // What an operator has freed is gone, and who has died relies on nothing.
    if (!standing || !process.alive || world.freed.has(hold.nonce)) return;
    const stands = standing().filter((ms) => world.now + ms > end);
    world.check(
      "what is held stands",
      stands.length >= quorumOf(world.servers.length),
      () =>
        `${process.name} relies on ${resources} for ${remaining.toFixed(1)} ms more, and ` +
        `${stands.length} of ${world.servers.length} endpoints keep it so long`,
      this.#needs(hold, invariants["what is held stands"]),
    );
  }

  /** Checks that a holder that listens is informed of the end in time. */
  #expectLossReported(hold: Hold): void {
    const { process, lossReported } = hold;
    if (!lossReported || !process.running) return;
    const { pausedFor } = process;
    const allowed = (process.disturbances > 0 ? toleranceAfterDisturbance : tolerance) / process.rate;
    this.#world.scheduler.at(this.#world.now + allowed, () => {
      // Timers of a paused process fire when it goes on, and a release does not abort the signal.
      const hasRun = process.running && process.pausedFor === pausedFor;
      if (!hasRun || hold.releaseInvoked !== undefined) return;
      const what = () => `${process.name} was not informed that ${hold.resources} is over`;
      this.#world.check("validity is honest", lossReported(), what);
    });
  }

  #on(resource: string): Set<Hold> {
    return entryOf(this.#current, resource, () => new Set());
  }
}

/** Whether one of two holds of a resource must end before the other begins. */
function excludes(one: Hold, other: Hold): boolean {
  return one.group === undefined || one.group !== other.group;
}
