import type { Lock, Redlock } from "../src/index.ts";
import type { Client } from "./client.ts";
import type { Ledger } from "./ledger.ts";
import { resource } from "./names.ts";

/** What is the same for all contenders of a world. */
export interface Race {
  readonly fencing: boolean;
  readonly ledger: Ledger;
  /** Counts the holds of the world. */
  holds: number;
}

/** What a contender does now. */
export type State = "idle" | "waiting" | "holding" | "lost";

/** One client that acquires, writes, and releases. */
export class Contender {
  readonly client: Client;
  state: State = "idle";
  #hold: Lock | undefined;
  #number = 0;
  #cancel: AbortController | undefined;
  readonly #redlock: Redlock;
  readonly #race: Race;

  constructor(client: Client, race: Race) {
    this.client = client;
    this.#race = race;
    this.#redlock = client.redlock();
  }

  get fence(): number | undefined {
    return this.#hold?.fence;
  }

  remaining(): number {
    return this.state === "holding" ? (this.#hold?.remaining() ?? 0) : 0;
  }

  /** Acquires, and holds until it is released or lost. @returns whether it was acquired */
  async acquire(given: { readonly wait?: number; readonly ttl?: number } = {}): Promise<boolean> {
    if (this.state === "waiting" || this.state === "holding") return false;
    this.state = "waiting";
    this.client.doing = "acquire";
    this.#cancel = new AbortController();
    try {
      const options = { ...given, signal: this.#cancel.signal, fencing: this.#race.fencing };
      this.client.calls += 1;
      const call = `${this.client.calls}`;
      this.client.record({ phase: "called", operation: "acquire", key: resource, call });
      const hold: Lock = await this.#redlock.acquire(resource, options);
      this.#race.holds += 1;
      this.#number = this.#race.holds;
      this.#hold = hold;
      this.state = "holding";
      this.client.holds(resource, hold);
      hold.signal.addEventListener("abort", () => {
        if (this.#hold === hold && this.state === "holding") this.state = "lost";
      });
      return true;
    } catch {
      this.state = "idle";
      return false;
    }
  }

  /** Ends the waiting. */
  giveUp(): void {
    this.#cancel?.abort(new Error("given up"));
  }

  async extend(): Promise<void> {
    const hold = this.#hold;
    if (!hold || this.state !== "holding") return;
    this.client.doing = "extend";
    await hold.extend();
    this.client.holds(resource, hold);
  }

  /** Writes to the ledger, with the fence if there is one; also after its hold has ended, as a process does that was frozen. */
  write(what: string): Promise<boolean> {
    const writer = { hold: this.#number, fence: this.#hold?.fence };
    return this.#race.ledger.write(this.client, what, writer);
  }

  async release(): Promise<void> {
    if (!this.#hold) return;
    this.client.doing = "release";
    const hold = this.#hold;
    this.state = "idle";
    // Where it cannot be known, the ttl frees it.
    await hold.release();
  }
}
