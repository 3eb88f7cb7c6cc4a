import {
  type AcquireOptions,
  isRedlockError,
  type Lock,
  type Redlock,
  type RedlockEvent,
} from "../../src/index.ts";
import type { Client } from "./client.ts";
import { redlockIn } from "./link.ts";

/** The lock that all contend for. */
const key = "invoice-42";

/** A client that acquires a lock. The picture shows what the library reports of it. */
export class Contender {
  readonly client: Client;
  readonly #redlock: Redlock;

  constructor(client: Client) {
    this.client = client;
    this.#redlock = redlockIn(client, (event) => this.#note(event));
  }

  /** @returns undefined if it does not get the lock */
  async acquire(options: AcquireOptions): Promise<Lock | undefined> {
    const { world, name: client } = this.client;
    world.record({ phase: "called", client, operation: "acquire", key });
    const lock = await this.#redlock.acquire(key, options).catch(() => undefined);
    if (lock) {
      const { fence, ttl } = lock;
      const safe = world.time.elapsed + lock.remaining();
      // A holder does not rely on 1 % of the ttl, and 2 ms.
      world.record({ phase: "valid", client, key, fence, safe, until: safe + ttl * 0.01 + 2 });
    }
    return lock;
  }

  #note(event: RedlockEvent): void {
    const { world, name: client } = this.client;
    const returned = { phase: "returned", client, operation: "acquire", key } as const;
    if (event.type === "contended") world.record({ ...returned, operation: "round", outcome: "held" });
    if (event.type === "acquired") world.record({ ...returned, outcome: "granted", fence: event.fence });
    // One that gave up was neither refused nor unanswered.
    if (event.type === "notAcquired" && isRedlockError(event.error)) {
      world.record({ ...returned, outcome: "error", detail: event.error.message });
    }
    if (event.type === "released" || event.type === "lost") world.record({ phase: "ended", client, key });
  }
}
