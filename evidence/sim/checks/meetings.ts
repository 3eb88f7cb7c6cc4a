import { entryOf } from "../field.ts";
import type { World } from "../world/world.ts";

/** One party of a barrier. */
interface Party {
  /** In how many generations it has begun to arrive, and how many it has passed. */
  begun: number;
  passed: number;
  /** The number of the last generation that it has passed. */
  generation: number | undefined;
}

/** The parties of one barrier, with the checks of what they do. */
export class Meeting {
  /** How many parties it waits for. */
  count: number;
  readonly #world: Pick<World, "check">;
  readonly #parties = new Map<string, Party>();

  constructor(world: Pick<World, "check">, count: number) {
    this.#world = world;
    this.count = count;
  }

  /** How many parties have joined. */
  get size(): number {
    return this.#parties.size;
  }

  joins(name: string): void {
    this.#of(name);
  }

  /** A party calls for the generation that it has not passed yet. A repeated call counts once. */
  begins(name: string): void {
    const party = this.#of(name);
    party.begun = party.passed + 1;
  }

  /** Nobody passes before all have arrived as often, and all pass the same generations in order. */
  passed(by: string, generation: number): void {
    const world = this.#world;
    const party = this.#of(by);
    const parties = [...this.#parties.values()];
    party.passed += 1;
    const here = parties.filter(({ begun }) => begun >= party.passed);
    if (this.count > 1) {
      world.check(
        "a barrier waits for all",
        here.length >= this.count,
        () =>
          `${by} passes for the ${party.passed}. time, ${here.length} of ${this.count} have arrived as often`,
      );
    }
    const before = party.generation ?? generation - 1;
    if (party.generation !== undefined) {
      const what = () => `${by} passed ${generation} after ${before}`;
      world.check("generations follow", generation === before + 1, what);
    }
    party.generation = generation;
    for (const other of parties) {
      if (other === party || other.passed !== party.passed) continue;
      const what = () => `${by} passed ${generation}, another ${other.generation}`;
      world.check("generations follow", other.generation === generation, what);
    }
  }

  #of(name: string): Party {
    return entryOf(this.#parties, name, () => ({ begun: 0, passed: 0, generation: undefined }));
  }
}
