import type { Client } from "./client.ts";
import { storageName } from "./names.ts";
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
  async write(client: Client, what: string, { hold, fence }: Writer): Promise<boolean> {
    const world = this.#world;
    const { time } = world;
    const about = {
      client: client.name,
      endpoint: storageName,
      request: world.newRequest(),
      operation: "write",
    };
    world.record({ phase: "sent", ...about, ...(fence === undefined ? {} : { fence }) });
    await time.sleep(world.travelTime(client.name, storageName));
    const isTaken = fence === undefined || fence >= this.highest;
    const detail = isTaken ? what : `refused: fence ${fence} is lower than ${this.highest}`;
    world.record({ phase: "executed", ...about, outcome: isTaken ? "granted" : "held", detail });
    if (isTaken) this.#append({ by: client.name, what, fence }, hold);
    await time.sleep(world.travelTime(client.name, storageName));
    await new Promise<void>((resolve) => client.whenRunning(resolve));
    world.record({ phase: "answered", ...about, outcome: isTaken ? "granted" : "held", detail });
    return isTaken;
  }

  #append(entry: Entry, hold: number): void {
    const world = this.#world;
    this.entries.push(entry);
    this.highest = Math.max(this.highest, entry.fence ?? 0);
    if (hold < this.#lastHold) {
      const detail = `${entry.by} wrote after its hold had ended, over what its successor wrote`;
      world.record({ phase: "violated", endpoint: storageName, name: "late write", detail });
    }
    this.#lastHold = Math.max(this.#lastHold, hold);
  }
}
