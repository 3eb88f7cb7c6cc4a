import type { Command } from "../../../src/endpoints/endpoint.ts";
import type { IoredisClient } from "../../../src/sockets/index.ts";
import type { Process } from "../world/process.ts";
import type { Server } from "../world/server.ts";
import type { World } from "../world/world.ts";

/** ms that a message takes in one direction. */
const delay = 1;

/**
 * A client with a queue and one connection, as ioredis is: it keeps the order, and all that it was given is executed, however
 * late.
 */
export class QueueingClient implements IoredisClient {
  readonly status = "ready";
  readonly isCluster = false;
  readonly options = { maxRetriesPerRequest: 0 };
  /** How many commands are not answered. */
  unanswered = 0;
  readonly #world: World;
  readonly #process: Process;
  readonly #server: Server;
  #stillUntil = 0;
  /** When the latest request and the latest reply arrive. */
  #requestAt = 0;
  #replyAt = 0;

  constructor(world: World, process: Process, server: Server) {
    this.#world = world;
    this.#process = process;
    this.#server = server;
  }

  /** The connection stands still for so many ms, and loses nothing. */
  standStill(ms: number): void {
    this.#stillUntil = this.#world.now + ms;
  }

  call(...command: Command[number][] & string[]): Promise<unknown> {
    const { scheduler } = this.#world;
    this.unanswered += 1;
    return new Promise((resolve, reject) => {
      const answer = (settle: () => void) => {
        this.#replyAt = this.#arrivalAfter(this.#replyAt);
        scheduler.at(this.#replyAt, () => {
          this.unanswered -= 1;
          this.#process.deliver(settle);
        });
      };
      const execute = () => {
        try {
          const reply = this.#server.execute(command);
          answer(() => resolve(reply));
        } catch (error) {
          answer(() => reject(error));
        }
      };
      this.#requestAt = this.#arrivalAfter(this.#requestAt);
      scheduler.at(this.#requestAt, () => {
        scheduler.at(this.#world.now + this.#server.workOff(1), execute);
      });
    });
  }

  connect(): Promise<void> {
    return Promise.resolve();
  }

  // It stays connected, so there is nothing to hear.
  readonly on = () => undefined;
  readonly off = () => undefined;
  listenerCount(): number {
    return 1;
  }

  /** When a message arrives that is sent now, behind the one before it. */
  #arrivalAfter(before: number): number {
    return Math.max(this.#world.now, this.#stillUntil, before - delay) + delay;
  }
}
