import type { MemoryEndpoint } from "../local/src/memory/index.ts";
import type { Outcome, TimelineEvent } from "../picture/timeline.ts";
import { type Command, type Endpoint, EndpointError } from "../src/index.ts";
import type { Scheduler } from "./scheduler.ts";

/** What a world is to its clients and to what they send. */
export interface Wire {
  readonly scheduler: Scheduler;
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
  recordJump(where: Pick<TimelineEvent, "client" | "endpoint">, ms: number): void;
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
    const operation = operationOf(command) ?? this.#client.doing;
    const key = resourceOf(command);
    const about = { client, endpoint, request, operation, ...(key === undefined ? {} : { key }) };
    world.claim(command, client);
    world.record({ phase: "sent", ...about });
    const { scheduler, network } = world;
    const isLost = world.isCut(client, endpoint) || world.random() < network.loss;
    const there = world.travelTime(client, endpoint);
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(new Error("no answer in time")), { once: true });
      scheduler.at(scheduler.now + (isLost ? there / 2 : there), () => {
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
    const outcome = "error" in answer ? "error" : outcomeOf(command, about.operation, answer.reply);
    if (!world.killed.has(endpoint.name)) world.record({ phase: "executed", ...about, outcome });
    world.look(endpoint);
    const isLost = world.isCut(name, endpoint.name) || world.random() < world.network.loss;
    const back = world.travelTime(name, endpoint.name);
    await world.scheduler.sleep(isLost ? back / 2 : back);
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

const named = new Set(["acquire", "restore", "extend", "release", "begin", "end", "look", "free"]);
const natives: Readonly<Record<string, string>> = { SET: "acquire", DELEX: "release" };

/** What a command does, as far as it says so. */
function operationOf(command: Command): string | undefined {
  return natives[String(command[0])] ?? command.map(String).find((word) => named.has(word));
}

/** The resource that it is about. */
function resourceOf(command: Command): string | undefined {
  const key = command.map(String).find((word) => word.startsWith("redlock:"));
  const [, kind, resource] = /^redlock:(\w+)[^{]*\{(.*)\}/.exec(key ?? "") ?? [];
  return kind === "idem" ? "delivery" : resource;
}

function outcomeOf(command: Command, operation: string, reply: unknown): Outcome {
  // SET with NX and GET returns what stood there before.
  if (command.includes("GET")) return reply === null ? "granted" : "held";
  const first: unknown = Array.isArray(reply) ? reply[0] : reply;
  const isNo = first === null || first === 0;
  if (!isNo) return "granted";
  return operation === "acquire" || operation === "begin" ? "held" : "gone";
}
