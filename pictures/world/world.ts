import { type MemoryEndpoint, memoryEndpoint, VirtualTime } from "../../local/src/memory/index.ts";
import type { Command } from "../../src/index.ts";
import { tokensIn } from "../../src/inspect/stored-key.ts";
import { cellScript } from "../../src/redis/cell.lua.ts";
import { upstashFlag } from "../../src/redis/script.ts";
import { mailboxScript } from "../../src/sync/internal/mailbox.lua.ts";
import type { Happening, TimelineEvent } from "../timeline.ts";
import { epoch, type Stored, storedAt } from "./stored.ts";

/** ms from a client to an endpoint, or back, on average. */
const latency = 40;

/**
 * Endpoints and the network to them, in virtual time, and what happens there. Clients run the real library, endpoints the
 * embedded engine.
 */
export class World {
  readonly time: VirtualTime = new VirtualTime({ seed: 3, start: epoch });
  readonly endpoints: readonly MemoryEndpoint[];
  /** What the clients write to. */
  readonly storage: string;
  /** ms for one way, by client and endpoint: `Ann>redis-1`. */
  readonly distances: Map<string, number> = new Map();
  /** What has happened so far. */
  readonly events: TimelineEvent[] = [];
  /** What each endpoint held when it was last looked at. */
  readonly #stored = new Map<string, ReadonlyMap<string, Stored>>();
  /** Clients by the tokens that they sent. */
  readonly #owners = new Map<string, string>();
  #requests = 0;

  constructor(endpoints: number, storage: string) {
    this.storage = storage;
    this.endpoints = Array.from({ length: endpoints }, (_, index) =>
      memoryEndpoint({ name: endpoints === 1 ? "redis" : `redis-${index + 1}`, runtime: this.time }),
    );
    for (const { engine } of this.endpoints) {
      // As after some time of use: else the first requests would only send the script.
      for (const { source } of [cellScript, mailboxScript]) {
        engine.execute(["SCRIPT", "LOAD", upstashFlag + source]);
      }
    }
  }

  newRequest(): string {
    this.#requests += 1;
    return `r${this.#requests}`;
  }

  /** ms for one way between two. */
  travelTime(client: string, endpoint: string): number {
    const { random } = this.time;
    // Nothing uses this number. Without it every later one would be another, and the pictures would change.
    if (endpoint !== this.storage) random();
    const usual = latency * (0.8 + 0.4 * random());
    return this.distances.get(`${client}>${endpoint}`) ?? usual;
  }

  record(event: Happening): void {
    this.events.push({ time: this.time.elapsed, ...event });
  }

  /** Says at the storage whether a promise was kept. */
  judge(phase: "upheld" | "violated", name: string, detail?: string): void {
    this.record({ phase, endpoint: this.storage, name, detail });
  }

  /** Remembers whose the tokens in a command are. */
  claim(command: Command, client: string): void {
    for (const token of command.flatMap((word) => tokensIn(String(word)))) {
      if (!this.#owners.has(token)) this.#owners.set(token, client);
    }
  }

  /** Records what has changed at an endpoint since it was last looked at. */
  look(endpoint: MemoryEndpoint): void {
    const { name } = endpoint;
    const known = this.#stored.get(name) ?? new Map<string, Stored>();
    const found = storedAt(endpoint, (token) => this.#owners.get(token) ?? "");
    this.#stored.set(name, found);
    for (const [at, stored] of found) {
      const before = known.get(at);
      if (before?.value === stored.value && before.until === stored.until) continue;
      if (before && before.key !== stored.key) this.#remove(name, before);
      const { key, holder, until, fence } = stored;
      this.record({ phase: "stored", endpoint: name, key, holder, until, fence });
    }
    for (const [at, before] of known) if (!found.has(at)) this.#remove(name, before);
  }

  #remove(endpoint: string, { key, holder }: Stored): void {
    this.record({ phase: "removed", endpoint, key, holder });
  }
}
