import { type MemoryEndpoint, memoryEndpoint, VirtualTime } from "../local/src/memory/index.ts";
import type { Command } from "../src/index.ts";
import { tokensIn } from "../src/inspect/stored-key.ts";
import { cellScript } from "../src/redis/cell.lua.ts";
import { upstashFlag } from "../src/redis/script.ts";
import { mailboxScript } from "../src/sync/internal/mailbox.lua.ts";
import { Client } from "./client.ts";
import type { Wire } from "./link.ts";
import { epoch } from "./names.ts";
import type { Timeline, TimelineEvent } from "./picture/timeline.ts";
import { type Stored, storedAt } from "./stored.ts";

/** What the sliders set. */
export interface Network {
  /** ms from a client to an endpoint, or back, on average. */
  latency: number;
  /** Share of requests that are lost on their way, and of replies, from 0 to 1. */
  loss: number;
}

/** What a world is made of. */
export interface Cast {
  readonly endpoints: number;
  readonly clients: readonly string[];
  /** What its processes write to. */
  readonly storage: string;
}

/**
 * Clients, endpoints and the network between them, in virtual time. The clients run the real library, the endpoints the
 * embedded engine.
 */
export class World implements Wire {
  readonly time: VirtualTime;
  /** A number in [0, 1), the same for the same seed. */
  readonly random: () => number;
  readonly network: Network;
  readonly endpoints: readonly MemoryEndpoint[];
  readonly clients: readonly Client[];
  /** Pairs between which nothing passes. */
  readonly cuts = new Set<string>();
  /** ms that a client's requests to an endpoint take at least, by their pair: for worlds that play a scene. */
  readonly distances = new Map<string, number>();
  readonly killed = new Set<string>();
  /** The lane of what the processes write to. */
  readonly storage: string;
  /** What time stands still for. */
  readonly #awaited = new Set<Promise<unknown>>();
  /** Calls these at the next request of a client. */
  readonly #onRequest = new Map<string, () => void>();
  readonly #stored = new Map<string, Map<string, Stored>>();
  readonly #owners = new Map<string, string>();
  readonly #onEvent: (event: TimelineEvent) => void;
  #requests = 0;

  constructor(
    { endpoints, clients, storage }: Cast,
    {
      network,
      seed,
      onEvent,
    }: {
      readonly network: Network;
      readonly seed: number;
      readonly onEvent: (event: TimelineEvent) => void;
    },
  ) {
    this.network = network;
    this.storage = storage;
    this.#onEvent = onEvent;
    this.time = new VirtualTime({ seed, start: epoch, settled: () => this.#settled() });
    this.random = this.time.random;
    this.endpoints = Array.from({ length: endpoints }, (_, index) =>
      memoryEndpoint({ name: endpoints === 1 ? "redis" : `redis-${index + 1}`, runtime: this.time }),
    );
    this.clients = clients.map((name) => new Client(this, name));
    for (const { name, engine } of this.endpoints) {
      this.#stored.set(name, new Map());
      // As after some time of use: else the first requests of a scene would only send the script.
      for (const { source } of [cellScript, mailboxScript]) {
        engine.execute(["SCRIPT", "LOAD", upstashFlag + source]);
      }
    }
  }

  /** Promises have had their turns, and threads their time. */
  async #settled(): Promise<void> {
    do {
      await Promise.all(this.#awaited);
      for (let turns = 0; turns < 3; turns += 1) await turn();
    } while (this.#awaited.size > 0);
  }

  /** Time stands still until this has happened: it waits for a thread, for example one that computes a hash. */
  standStill(until: Promise<unknown>): void {
    const over = until.then(
      () => undefined,
      () => undefined,
    );
    this.#awaited.add(over);
    void over.then(() => this.#awaited.delete(over));
  }

  /** Resolves when a client sends its next request. */
  nextRequest(client: string): Promise<void> {
    return new Promise((resolve) => this.#onRequest.set(client, resolve));
  }

  /** The lanes of its picture. */
  timeline(title: string): Timeline {
    return {
      version: 1,
      title,
      clients: this.clients.map(({ name }) => name),
      endpoints: [...this.endpoints.map(({ name }) => name), this.storage],
      events: [],
    };
  }

  client(name: string): Client {
    return this.clients.find((client) => client.name === name)!;
  }

  newRequest(): string {
    this.#requests += 1;
    return `r${this.#requests}`;
  }

  /** ms for one way between two. */
  travelTime(client: string, endpoint: string): number {
    const usual = this.network.latency * (0.8 + 0.4 * this.random());
    return this.distances.get(`${client}>${endpoint}`) ?? usual;
  }

  isCut(client: string, endpoint: string): boolean {
    return this.cuts.has(`${client}>${endpoint}`);
  }

  record(event: Omit<TimelineEvent, "time">): void {
    this.#onEvent({ time: this.time.elapsed, ...event });
  }

  /** Says at the storage whether a promise was kept. */
  judge(phase: "upheld" | "violated", name: string, detail?: string): void {
    this.record({ phase, endpoint: this.storage, name, ...(detail !== undefined && { detail }) });
  }

  /** Sets an endpoint's clock forward: a fault that is over at once. */
  jump(endpoint: MemoryEndpoint, ms: number): void {
    const offset = typeof endpoint.clockOffset === "number" ? endpoint.clockOffset : 0;
    endpoint.clockOffset = offset + ms;
    const fault = { endpoint: endpoint.name, name: `clock +${ms / 1_000} s` };
    this.record({ phase: "fault", ...fault });
    this.record({ phase: "healed", ...fault });
    this.look(endpoint);
  }

  /** Remembers whose the tokens in a command are. */
  claim(command: Command, client: string): void {
    this.#onRequest.get(client)?.();
    for (const word of command) {
      for (const token of tokensIn(String(word))) {
        if (!this.#owners.has(token)) this.#owners.set(token, client);
      }
    }
  }

  /** Who wrote a value; `""` where that is not known. */
  ownerOf(value: string): string {
    return tokensIn(value).map((token) => this.#owners.get(token))[0] ?? "";
  }

  /** What an endpoint holds now. */
  stored({ name }: Pick<MemoryEndpoint, "name">): ReadonlyMap<string, Stored> {
    return this.#stored.get(name)!;
  }

  /** Compares what an endpoint holds with what was recorded last, and records what has changed. */
  look(endpoint: MemoryEndpoint): void {
    const known = this.#stored.get(endpoint.name)!;
    const found = this.killed.has(endpoint.name) ? known : storedAt(endpoint, (value) => this.ownerOf(value));
    for (const [key, stored] of found) {
      const before = known.get(key);
      const isSameTime = before?.until === stored.until || Math.abs((before?.until ?? 0) - stored.until) < 2;
      if (before?.value === stored.value && isSameTime) continue;
      if (before && before.label !== stored.label) this.#remove(endpoint, before);
      known.set(key, stored);
      const { holder, until, label, fence } = stored;
      this.record({
        phase: "stored",
        endpoint: endpoint.name,
        key: label,
        holder,
        until,
        ...(fence === undefined ? {} : { fence }),
      });
    }
    for (const [key, before] of [...known]) {
      if (found.has(key)) continue;
      known.delete(key);
      this.#remove(endpoint, before);
    }
  }

  #remove({ name }: MemoryEndpoint, { label }: Stored): void {
    this.record({ phase: "removed", endpoint: name, key: label });
  }

  kill(endpoint: MemoryEndpoint): void {
    if (this.killed.has(endpoint.name)) return;
    this.killed.add(endpoint.name);
    endpoint.stop();
    this.record({ phase: "fault", endpoint: endpoint.name, name: "killed" });
  }

  /** Starts it again, with or without its data. */
  start(endpoint: MemoryEndpoint, memory: "kept" | "lost"): void {
    if (!this.killed.delete(endpoint.name)) return;
    endpoint.start({ memory });
    this.record({ phase: "healed", endpoint: endpoint.name, name: "killed" });
    this.look(endpoint);
  }

  /** Cuts or mends what is between a client and an endpoint. */
  setCut(client: string, endpoint: string, isCut: boolean): void {
    if (this.isCut(client, endpoint) === isCut) return;
    if (isCut) this.cuts.add(`${client}>${endpoint}`);
    else this.cuts.delete(`${client}>${endpoint}`);
    this.record({ phase: isCut ? "fault" : "healed", client, endpoint, name: "partition" });
  }
}

/** A turn of the event loop, without the 4 ms that browsers add to timers. */
function turn(): Promise<unknown> {
  const { port1, port2 } = new MessageChannel();
  const passed = new Promise((resolve) => port1.addEventListener("message", resolve, { once: true }));
  port1.start();
  port2.postMessage(undefined);
  return passed.then(() => port1.close());
}
