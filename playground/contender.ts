import type { Lock, Redlock } from "../src/index.ts";
import type { Actor, Deed, Slot } from "./actor.ts";
import type { Client } from "./client.ts";
import { Ledger } from "./ledger.ts";
import type { World } from "./world.ts";

/** The name of the lock that all contend for. */
const resource = "invoice-42";

/** Contenders for one lock, and the ledger that it protects. */
export interface Race {
  readonly actors: readonly Contender[];
  readonly ledger: Ledger;
  readonly isFenced: boolean;
  lines(): string[];
  /** Counts the holds of the world. */
  holds: number;
}

/** All clients of a world contend. */
export function raceIn(world: World, { isGuarded }: { readonly isGuarded: boolean }): Race {
  const ledger = new Ledger(world);
  const actors: Contender[] = [];
  const race = { actors, ledger, isFenced: isGuarded, lines: () => ledger.lines(), holds: 0 };
  actors.push(...world.clients.map((client) => new Contender(client, race)));
  return race;
}

/** What a contender does now. */
type State = "idle" | "waiting" | "holding" | "lost";

/** One client that acquires, writes, and releases. */
export class Contender implements Actor {
  readonly client: Client;
  #state: State = "idle";
  #hold: Lock | undefined;
  #number = 0;
  #cancel: AbortController | undefined;
  readonly #redlock: Redlock;
  readonly #race: Race;

  constructor(client: Client, race: Race) {
    this.client = client;
    this.#race = race;
    this.#redlock = client.redlock((event) => client.note(event));
  }

  readonly slots: readonly Slot[] = [
    [
      this.#deed("Acquire", ["idle", "lost"], () => this.acquire()),
      this.#deed("Give up", ["waiting"], () => this.giveUp()),
    ],
    [this.#deed("Write", ["holding", "lost"], () => this.write(`${this.client.name}'s line`))],
    [this.#deed("Extend", ["holding"], () => this.extend().catch(() => undefined))],
    [this.#deed("Release", ["holding", "lost"], () => this.release())],
  ];

  #deed(label: string, states: readonly State[], act: () => unknown): Deed {
    return { label, isPossible: () => !this.client.isFrozen && states.includes(this.#state), act };
  }

  get says(): string {
    const frozen = this.client.isFrozen ? "frozen, " : "";
    if (this.#state === "holding") {
      const { fence } = this.#hold!;
      return `${frozen}holds it for ${Math.round(this.remaining())} ms more${fence === undefined ? "" : ` · fence ${fence}`}`;
    }
    return frozen + { idle: "does nothing", waiting: "waits for it", lost: "has lost it" }[this.#state];
  }

  get isBusy(): boolean {
    return this.#state === "waiting" || this.#state === "holding";
  }

  /** ms for which it may rely on the lock. */
  remaining(): number {
    return this.#state === "holding" ? Math.max(0, this.#hold?.remaining() ?? 0) : 0;
  }

  /** Acquires, and holds until it is released or lost. @returns whether it was acquired */
  async acquire(given: { readonly wait?: number; readonly ttl?: number } = {}): Promise<boolean> {
    if (this.#state === "waiting" || this.#state === "holding") return false;
    this.#state = "waiting";
    this.client.doing = "acquire";
    this.#cancel = new AbortController();
    try {
      const options = { ...given, signal: this.#cancel.signal, fencing: this.#race.isFenced };
      this.client.calls += 1;
      const call = `${this.client.calls}`;
      this.client.record({ phase: "called", operation: "acquire", key: resource, call });
      const hold: Lock = await this.#redlock.acquire(resource, options);
      this.#race.holds += 1;
      this.#number = this.#race.holds;
      this.#hold = hold;
      this.#state = "holding";
      this.client.holds(resource, hold);
      for (const other of this.#race.actors)
        if (other !== this) other.client.whenRunning(() => this.#compare(other));
      hold.signal.addEventListener("abort", () => {
        if (this.#hold === hold && this.#state === "holding") this.#state = "lost";
      });
      return true;
    } catch {
      this.#state = "idle";
      return false;
    }
  }

  /** Two processes must not hold the lock at once, if both of them run. */
  #compare(other: Contender): void {
    const isBroken = [this, other].every((each) => each.remaining() > 0 && !each.client.isFrozen);
    const detail = `${this.client.name} and ${other.client.name} hold ${resource}`;
    if (isBroken) this.client.record({ phase: "violated", name: "TWO HOLDERS", detail });
  }

  /** Ends the waiting. */
  giveUp(): void {
    this.#cancel?.abort(new Error("given up"));
  }

  async extend(): Promise<void> {
    const hold = this.#hold;
    if (!hold || this.#state !== "holding") return;
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
    this.#state = "idle";
    // Where it cannot be known, the ttl frees it.
    await hold.release();
  }
}
