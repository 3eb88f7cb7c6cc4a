import type { CommandResult } from "./lock-server.ts";

/** A Durable Object that is reached by `fetch`. */
export interface LockServerStub {
  /** Sends a request to it. */
  fetch(url: string, init?: RequestInit): Promise<Response>;
}

/** The binding of a {@link LockServer}, as far as it is used. */
export interface LockServerNamespace {
  /** The id of the object with this name. */
  idFromName(name: string): unknown;
  /** The object. */
  get(id: never, options?: { locationHint?: never }): LockServerStub;
  /** The same binding for objects that stay within a jurisdiction. */
  jurisdiction?(jurisdiction: never): LockServerNamespace;
}

/** Which object is the lock server. */
export interface LockServerOptions {
  /**
   * The name of the server: 1 … 64 letters, digits, `-`, `_` and `.`. Servers of different names share nothing. Default
   * `"locks"`.
   */
  readonly name?: string | undefined;
  /**
   * Where the object is to be created, for example `"weur"`: near most of those that ask. It counts for the first request
   * only. Default: near the first that asks.
   * https://developers.cloudflare.com/durable-objects/reference/data-location/
   */
  readonly locationHint?: string | undefined;
  /** Where its keys must stay, for example `"eu"`. With another jurisdiction it is another server. Default: anywhere. */
  readonly jurisdiction?: string | undefined;
}

const optionNames = ["name", "locationHint", "jurisdiction"];

/** @throws TypeError | RangeError when an option is wrong */
export function checkLockServer(options: LockServerOptions): void {
  for (const [option, text] of Object.entries(options)) {
    // Without its jurisdiction, a server would be another one, and elsewhere.
    if (!optionNames.includes(option)) {
      throw new TypeError(`a lock server has no option ${option}; there are ${optionNames.join(", ")}`);
    }
    if (text !== undefined && typeof text !== "string") throw new TypeError(`${option} must be a string`);
  }
  if (options.name !== undefined && !/^[\w.-]{1,64}$/.test(options.name)) {
    throw new RangeError("name must have 1 … 64 letters, digits, '-', '_' and '.'");
  }
}

/** A request that is refused as a whole: by the Worker in front, or by the object. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The object of a lock server, as those see it that ask it. */
export class LockServerObject {
  readonly #namespace: LockServerNamespace;
  readonly #id: unknown;
  readonly #hint: { locationHint: never } | undefined;

  /** @throws TypeError | RangeError when the binding is none, or an option is wrong */
  constructor(binding: LockServerNamespace, options: LockServerOptions = {}) {
    checkLockServer(options);
    checkBinding(binding);
    const { name = "locks", locationHint, jurisdiction } = options;
    this.#namespace = jurisdiction ? within(binding, jurisdiction) : binding;
    this.#id = this.#namespace.idFromName(name);
    this.#hint = locationHint ? { locationHint: locationHint as never } : undefined;
  }

  /**
   * Executes commands in one request. One that fails has its error as its result.
   *
   * @throws Refusal when the object refuses all, and what `fetch` throws
   */
  async execute(
    commands: readonly (readonly (string | number)[])[],
    signal?: AbortSignal,
  ): Promise<readonly CommandResult[]> {
    // As texts: JSON has no number for Infinity, and would say null.
    const body = JSON.stringify(commands.map((command) => command.map(String)));
    const answer = await this.#send("", { method: "POST", body, ...(signal && { signal }) });
    return (await answer.json()) as CommandResult[];
  }

  /** Subscribes to a channel. */
  async subscribe(channel: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const query = new URLSearchParams({ channel });
    const { body } = await this.#send(`subscribe?${query}`, { method: "POST", signal });
    return body!;
  }

  async #send(path: string, init: RequestInit): Promise<Response> {
    const object = this.#namespace.get(this.#id as never, this.#hint);
    const answer = await object.fetch(`https://lock-server/${path}`, init);
    if (answer.status === 200) return answer;
    throw new Refusal(answer.status, `the object answered ${answer.status}`);
  }
}

function checkBinding(binding: LockServerNamespace): void {
  if (typeof Object(binding).idFromName === "function") return;
  throw new TypeError(
    `the namespace must be a binding of a LockServer, such as env.LOCKS, got ${binding}: is it in the Wrangler configuration?`,
  );
}

function within(binding: LockServerNamespace, jurisdiction: string): LockServerNamespace {
  try {
    return binding.jurisdiction!(jurisdiction as never);
  } catch (error) {
    const { message } = error as Error;
    throw new TypeError(`the platform refuses the jurisdiction ${JSON.stringify(jurisdiction)}: ${message}`);
  }
}
