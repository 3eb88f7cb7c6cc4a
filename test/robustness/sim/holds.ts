import { type Invariant, invariants } from "./assumptions.ts";
import type { Process } from "./process.ts";
import type { World } from "./world.ts";

/** Something held for a time: a lock by its holder, or a key by the run that has claimed it. */
export interface Hold {
  readonly resources: readonly string[];
  /** Who holds it; two handles of one owner are one holder. */
  readonly holder: string;
  readonly nonce: string;
  readonly process: Process;
  /** ms, by the process's clocks, for which it may be relied on. */
  readonly remaining: () => number;
  /** Whether the end has been told; undefined when nobody asked to be told. */
  readonly lossReported: (() => boolean) | undefined;
  /** When the call that got it was made, and when it returned. */
  readonly invoked: number;
  readonly acquired: number;
  readonly fence: number | undefined;
  /** Those of one group hold it together, each on its own. */
  readonly group: string | undefined;
  /** It was asked for while a handle of its owner was being released: that may have ended it, or not. */
  endUnknown: boolean;
  readonly extensions: Extensions;
  /** When it could no longer be relied on. */
  ended: number | undefined;
  releaseInvoked: number | undefined;
  releaseReturned: number | undefined;
  /** What the release said; undefined when it could not tell. */
  released: boolean | undefined;
}

/** What is to be known of a hold's extensions. */
export interface Extensions {
  underWay: number;
  /** ms that the shortest asked for, and whether another asked for more after it. */
  least: number;
  regrown: boolean;
}

/** Something that has just been handed out. */
export function newHold(
  grant: Pick<
    Hold,
    "resources" | "nonce" | "process" | "remaining" | "lossReported" | "invoked" | "acquired"
  > &
    Partial<Pick<Hold, "holder" | "fence" | "group">>,
): Hold {
  return {
    holder: grant.nonce,
    fence: undefined,
    group: undefined,
    ...grant,
    endUnknown: false,
    extensions: { underWay: 0, least: Number.POSITIVE_INFINITY, regrown: false },
    ended: undefined,
    releaseInvoked: undefined,
    releaseReturned: undefined,
    released: undefined,
  };
}

/** The release of one handle of an owner. */
interface Release {
  readonly process: Process;
  /** When it returned; undefined: it has not. */
  returned: number | undefined;
}

// A timer may be late, and what it wakes takes a moment. Where a clock was set or stood still it may have been
// the other one that the timer went by; then the library looks once a second.
const tolerance = 10;
const tolerated = 1_010;

/** Who holds what at the moment, and whether that may be. */
export class Holds {
  /** All there ever were, in the order of their grants. */
  readonly all: Hold[] = [];
  readonly #world: World;
  readonly #invariant: Invariant;
  readonly #current = new Map<string, Set<Hold>>();
  /** By owner: the releases of its handles. */
  readonly #releases = new Map<string, Release[]>();

  /** @param invariant what is violated when there are two */
  constructor(world: World, invariant: Invariant) {
    this.#world = world;
    this.#invariant = invariant;
  }

  /** A holder has just learnt that it holds. */
  add(hold: Hold): void {
    const { resources, holder, process } = hold;
    this.all.push(hold);
    hold.endUnknown = holder !== hold.nonce && this.isReleasedBeside(hold);
    for (const resource of resources) {
      const current = this.#on(resource);
      for (const other of current) {
        if (hold.endUnknown || other.holder === holder || other.remaining() <= 0) continue;
        if (hold.group !== undefined && hold.group === other.group) continue;
        this.#world.violate(
          this.#invariant,
          `${resource} granted to ${process.name} while ${other.process.name} has ${other.remaining().toFixed(1)} ms`,
          // A shorter extension that is executed again cuts a longer one.
          other.extensions.regrown ? [...invariants[this.#invariant], "single execution"] : undefined,
        );
      }
      if (!hold.endUnknown) current.add(hold);
    }
    this.#probe(hold);
  }

  /** Looks again at everything that a process holds: its clock has been set. */
  recheck(process: Process): void {
    for (const hold of this.all) {
      if (hold.process !== process || hold.ended !== undefined) continue;
      this.#probe(hold);
    }
  }

  /** It has been given back: from this moment on its holder relies on nothing. */
  end(hold: Hold): void {
    if (hold.ended !== undefined) return;
    hold.ended = this.#world.now;
    for (const resource of hold.resources) this.#on(resource).delete(hold);
  }

  /**
   * Ends every hold of the same holder: with one of an owner's handles, all have given it back.
   *
   * @returns to be called when the release has returned: it ends nothing that is asked for from then on
   */
  endAllOfHolder({ holder, resources, process }: Hold): () => void {
    const release: Release = { process, returned: undefined };
    this.#releases.set(holder, [...(this.#releases.get(holder) ?? []), release]);
    for (const resource of resources) {
      for (const hold of [...this.#on(resource)]) if (hold.holder === holder) this.end(hold);
    }
    return () => {
      release.returned = this.#world.now;
    };
  }

  /** Whether a handle of the same holder was being released at any time since this was asked for. */
  isReleasedBeside({ holder, invoked }: Hold): boolean {
    const releases = this.#releases.get(holder) ?? [];
    // What a process that is dead has begun to release it cannot go on with.
    return releases.some(({ process, returned }) =>
      returned === undefined ? process.alive : returned >= invoked,
    );
  }

  /** Ends a hold when its validity does, however often that has been put off. */
  #probe(hold: Hold): void {
    if (hold.ended !== undefined) return;
    const left = hold.remaining();
    if (left > 0) {
      const next = this.#world.now + left / hold.process.rate + 0.01;
      this.#world.scheduler.at(next, () => this.#probe(hold));
      return;
    }
    this.end(hold);
    this.#expectTold(hold);
  }

  /** Has an eye on it that a holder who listens is told of the end in time. */
  #expectTold(hold: Hold): void {
    const { process, lossReported } = hold;
    if (!lossReported || !process.running) return;
    const { pausedFor, disturbances } = process;
    const allowed = (disturbances > 0 ? tolerated : tolerance) / process.rate;
    this.#world.scheduler.at(this.#world.now + allowed, () => {
      const hasRun = process.running && process.pausedFor === pausedFor;
      // A clock that was set forward and back again has shown an end that was none.
      if (!hasRun || lossReported() || hold.releaseInvoked !== undefined || hold.remaining() > 0) return;
      // Then it may have been set forward once more, a moment ago.
      if (process.disturbances > disturbances) return this.#expectTold(hold);
      this.#world.violate(
        "validity is honest",
        `${process.name} was not told that ${hold.resources} is over`,
      );
    });
  }

  #on(resource: string): Set<Hold> {
    let current = this.#current.get(resource);
    if (!current) {
      current = new Set();
      this.#current.set(resource, current);
    }
    return current;
  }
}
