import type { Client } from "./client.ts";
import { write } from "./storage.ts";
import type { World } from "./world.ts";

/** One line of the ledger. */
export interface Entry {
  readonly by: string;
  readonly what: string;
  readonly fence: number | undefined;
}

/** A hold, as the ledger knows it: the later one has the greater number. */
export interface Writer {
  readonly hold: number;
  readonly fence: number | undefined;
}

/** What the locks protect: a store that refuses a fence that is lower than the highest it has seen. */
export class Ledger {
  readonly entries: Entry[] = [];
  highest = 0;
  #lastHold = 0;
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** A client writes a line. @returns whether the ledger took it */
  write(client: Client, what: string, { hold, fence }: Writer): Promise<boolean> {
    const arrive = () => {
      if (fence !== undefined && fence < this.highest) return this.#refuse(client, fence);
      this.#append({ by: client.name, what, fence }, hold);
      return undefined;
    };
    return write(this.#world, client, { operation: "write", fence, arrive });
  }

  #refuse(client: Client, fence: number): string {
    const { highest } = this;
    const detail = `${client.name} wrote with an older fence than its successor`;
    this.#world.judge("upheld", `REFUSED ${fence} < ${highest}`, detail);
    return `refused: fence ${fence} is lower than ${highest}`;
  }

  #append(entry: Entry, hold: number): void {
    this.entries.push(entry);
    this.highest = Math.max(this.highest, entry.fence ?? 0);
    if (hold < this.#lastHold) {
      const detail = `${entry.by} wrote after its hold had ended, over what its successor wrote`;
      this.#world.judge("violated", "LATE WRITE", detail);
    }
    this.#lastHold = Math.max(this.#lastHold, hold);
  }

  /** Its lines, in words. */
  lines(): string[] {
    return this.entries.map(
      ({ by, what, fence }) => `${by}: ${what}${fence === undefined ? "" : ` (fence ${fence})`}`,
    );
  }
}
