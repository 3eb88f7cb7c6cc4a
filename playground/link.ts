import type { MemoryEndpoint, VirtualTime } from "../local/src/memory/index.ts";
import { answerOf, keysIn, operationOf } from "../local/src/page/command.ts";
import { type Command, type Endpoint, EndpointError } from "../src/index.ts";
import type { TimelineEvent } from "./picture/timeline.ts";

/** What a world is to its clients and to what they send. */
export interface Wire {
  readonly time: VirtualTime;
  readonly endpoints: readonly MemoryEndpoint[];
  readonly network: { readonly loss: number };
  readonly killed: ReadonlySet<string>;
  random(): number;
  newRequest(): string;
  travelTime(client: string, endpoint: string): number;
  isCut(client: string, endpoint: string): boolean;
  claim(command: Command, client: string): void;
  look(endpoint: MemoryEndpoint): void;
  record(event: Omit<TimelineEvent, "time">): void;
}

/** A client, as far as its requests need it. */
export interface Sender {
  readonly name: string;
  readonly world: Wire;
  /** What it does now, for requests that do not say it. */
  readonly doing: string;
  /** Calls it now, or once the process runs again. */
  whenRunning(then: () => void): void;
}

/** The network between one client and one endpoint. */
export class Link implements Endpoint {
  readonly name: string;
  readonly dialect: Endpoint["dialect"];
  readonly exactReplies = true;
  readonly #client: Sender;
  readonly #endpoint: MemoryEndpoint;

  constructor(client: Sender, endpoint: MemoryEndpoint) {
    this.#client = client;
    this.#endpoint = endpoint;
    this.name = endpoint.name;
    this.dialect = endpoint.dialect;
  }

  send(command: Command, signal: AbortSignal): Promise<unknown> {
    const { world, name: client } = this.#client;
    const { name: endpoint } = this;
    const request = world.newRequest();
    const words = command.map(String);
    const [key] = keysIn(words);
    const named = operationOf(words, key);
    const operation = named === words[0] ? this.#client.doing : named;
    const about = { client, endpoint, request, operation, ...(key && { key: key.resource }) };
    world.claim(command, client);
    world.record({ phase: "sent", ...about });
    const { time, network } = world;
    const isLost = world.isCut(client, endpoint) || world.random() < network.loss;
    const there = world.travelTime(client, endpoint);
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(new Error("no answer in time")), { once: true });
      time.at(time.elapsed + (isLost ? there / 2 : there), () => {
        if (isLost) world.record({ phase: "lost", what: "request", ...about });
        else void this.#execute(command, about).then(resolve, reject);
      });
    });
  }

  /** Executes it at the endpoint, whether or not somebody still waits for it, and carries the answer back. */
  async #execute(command: Command, about: About): Promise<unknown> {
    const { world, name } = this.#client;
    const endpoint = this.#endpoint;
    let answer: { readonly reply: unknown } | { readonly error: unknown };
    try {
      answer = { reply: await endpoint.send(command, new AbortController().signal) };
    } catch (error) {
      answer = { error };
    }
    const outcome =
      "error" in answer ? "error" : answerOf(about.operation, command.map(String), answer.reply);
    if (!world.killed.has(endpoint.name)) world.record({ phase: "executed", ...about, outcome });
    world.look(endpoint);
    const isLost = world.isCut(name, endpoint.name) || world.random() < world.network.loss;
    const back = world.travelTime(name, endpoint.name);
    await world.time.sleep(isLost ? back / 2 : back);
    if (isLost) {
      world.record({ phase: "lost", what: "reply", ...about });
      return new Promise(() => undefined);
    }
    await new Promise<void>((resolve) => this.#client.whenRunning(resolve));
    world.record({ phase: "answered", ...about, outcome });
    if ("reply" in answer) return answer.reply;
    if (answer.error instanceof Error) throw answer.error;
    throw new EndpointError(endpoint.name, "network", "the connection was refused");
  }
}

interface About {
  readonly client: string;
  readonly endpoint: string;
  readonly request: string;
  readonly operation: string;
  readonly key?: string;
}
