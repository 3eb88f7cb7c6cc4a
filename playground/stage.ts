import { Contender, type Race } from "./contender.ts";
import { Ledger } from "./ledger.ts";
import type { TimelineEvent } from "./picture/timeline.ts";
import { type Network, World } from "./world.ts";

/** What a world is made of. */
export interface Cast {
  readonly endpoints: number;
  readonly clients: readonly string[];
  readonly fencing: boolean;
}

/** A world with its contenders and its ledger. */
export class Stage {
  readonly cast: Cast;
  readonly world: World;
  readonly ledger: Ledger;
  readonly contenders: readonly Contender[];
  readonly #race: Race;

  constructor(
    cast: Cast,
    given: {
      readonly network: Network;
      readonly seed: number;
      readonly onEvent: (event: TimelineEvent) => void;
    },
  ) {
    this.cast = cast;
    this.world = new World(cast, given);
    this.ledger = new Ledger(this.world);
    this.#race = { fencing: cast.fencing, ledger: this.ledger, holds: 0 };
    this.contenders = this.world.clients.map((client) => new Contender(client, this.#race));
  }

  /** How often something was acquired. */
  get holds(): number {
    return this.#race.holds;
  }

  readonly pause = (ms: number): Promise<void> => this.world.time.sleep(ms);
}
