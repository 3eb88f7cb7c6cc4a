import type { MemoryEndpoint } from "../../local/src/memory/index.ts";
import { answerOf, keysIn, operationOf } from "../../local/src/page/command.ts";
import { type Command, type Endpoint, Redlock, type RedlockEvent } from "../../src/index.ts";
import type { Client } from "./client.ts";

/** The network between one client and one endpoint. */
export class Link implements Endpoint {
  readonly name: string;
  readonly dialect: Endpoint["dialect"];
  readonly exactReplies = true;
  readonly #client: Client;
  readonly #endpoint: MemoryEndpoint;

  constructor(client: Client, endpoint: MemoryEndpoint) {
    this.#client = client;
    this.#endpoint = endpoint;
    this.name = endpoint.name;
    this.dialect = endpoint.dialect;
  }

  send(command: Command, signal: AbortSignal): Promise<unknown> {
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(new Error("no answer in time")), { once: true });
      this.request(command).then(resolve, reject);
    });
  }

  /**
   * The endpoint executes the command, whether or not somebody still waits for the answer.
   *
   * @param named what the picture calls it. Default: what the library does by it
   */
  async request(command: Command, named?: string): Promise<unknown> {
    const words = command.map(String);
    const [key] = keysIn(words);
    const operation = named ?? operationOf(words, key);
    this.#client.world.claim(command, this.#client.name);
    const about = { endpoint: this.name, operation, key: key?.resource };
    const { reply } = await this.#client.exchange(about, async () => {
      const reply = await this.#endpoint.send(command, new AbortController().signal);
      this.#client.world.look(this.#endpoint);
      return { reply, outcome: answerOf(operation, words, reply) };
    });
    return reply;
  }
}

/** A client of the library in a process. */
export function redlockIn(client: Client, onEvent?: (event: RedlockEvent) => void): Redlock {
  return new Redlock({
    endpoints: client.world.endpoints.map((endpoint) => new Link(client, endpoint)),
    runtime: client.runtime,
    ttl: 3_000,
    timeout: 500,
    wait: 60_000,
    backoff: { min: 300, max: 700 },
    onEvent,
  });
}
