import { checkNumber, wrongType } from "./check.ts";
import { whyTooLong } from "./engine/limits.ts";
import { ReplyError } from "./engine/reply-error.ts";
import type { CommandResult } from "./lock-server.ts";
import { shardOf, shardOfCommand, tagOf } from "./shards.ts";

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

/** Which objects are one lock server. */
export interface LockServerOptions {
  /**
   * The name of the server: 1 … 64 letters, digits, `-`, `_` and `.`. Servers of different names share nothing. Default
   * `"locks"`.
   */
  readonly name?: string | undefined;
  /**
   * Over how many objects the names are spread, 1 … 64. One object answers about 1 000 requests a second. With more than
   * one, the locks of one request must have the same `{tag}` in their names, and a run cannot have a `lock`. It is stored:
   * requests that say another number are refused. Default 1.
   */
  readonly shards?: number | undefined;
  /**
   * Where its objects are to be created, for example `"weur"`: near most of those that ask. It counts for the first request
   * to an object only. Default: near the first that asks.
   * https://developers.cloudflare.com/durable-objects/reference/data-location/
   */
  readonly locationHint?: string | undefined;
  /**
   * Where its keys must stay, for example `"eu"`. It is stored, as `shards` is, in an object outside of the jurisdiction that
   * has no keys. Default: anywhere.
   */
  readonly jurisdiction?: string | undefined;
}

/** The names of {@link LockServerOptions}. */
export const lockServerOptionNames: Readonly<Record<keyof LockServerOptions, 1>> = {
  name: 1,
  shards: 1,
  locationHint: 1,
  jurisdiction: 1,
};

/** @throws TypeError | RangeError when an option is wrong */
export function checkLockServer({ name = "locks", shards = 1, ...where }: LockServerOptions): {
  readonly name: string;
  readonly shards: number;
} {
  for (const [option, text] of Object.entries({ name, ...where })) {
    if (text !== undefined && typeof text !== "string") throw wrongType(option, text, "a string");
  }
  if (!/^[\w.-]{1,64}$/.test(name)) {
    throw new RangeError("name must have 1 … 64 letters, digits, '-', '_' and '.'");
  }
  if (!Number.isInteger(checkNumber("shards", shards, 1, 64))) {
    throw new RangeError(`shards must be an integer, got ${shards}`);
  }
  return { name, shards };
}

/** By binding: the servers whose placement the first object has confirmed. */
const confirmed = new WeakMap<object, Set<string>>();

/** A request that is refused as a whole: by the Worker in front, or by an object. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The objects of one lock server. */
export class LockServerObjects {
  readonly #binding: LockServerNamespace;
  /** Where the keys are: the binding, or the part of it that is within the jurisdiction. */
  readonly #namespace: LockServerNamespace;
  readonly #name: string;
  readonly #shards: number;
  readonly #locationHint: string | undefined;
  /**
   * All that decides in which object a key is, beside the name of the server. Objects store it. So a
   * change of how they are found must change this text, and no other change may.
   */
  readonly #placement: string;

  /** @throws TypeError | RangeError when the binding is none, or an option is wrong */
  constructor(binding: LockServerNamespace, options: LockServerOptions = {}) {
    const { name, shards } = checkLockServer(options);
    const { locationHint, jurisdiction } = options;
    checkBinding(binding);
    this.#binding = binding;
    this.#namespace = jurisdiction ? within(binding, jurisdiction) : binding;
    this.#name = name;
    this.#shards = shards;
    this.#locationHint = locationHint;
    this.#placement = `${shards} shard${shards === 1 ? "" : "s"} and ${jurisdiction ? `the jurisdiction ${jurisdiction}` : "no jurisdiction"}`;
  }

  /**
   * Executes commands, those of each object in one request. One that fails has its error as its result.
   *
   * @throws Refusal when there are too many, or an object refuses all, and what `fetch` throws
   */
  async execute(
    commands: readonly (readonly (string | number)[])[],
    signal?: AbortSignal,
  ): Promise<readonly CommandResult[]> {
    const tooLong = whyTooLong(commands);
    if (tooLong) throw new Refusal(413, tooLong);
    const results: CommandResult[] = [];
    // As texts: JSON has no number for Infinity, and would say null.
    const texts = commands.map((command) => command.map(String));
    const byShard = new Map<number, number[]>();
    texts.forEach((command, index) => {
      try {
        const shard = shardOfCommand(command, this.#shards);
        const indices = byShard.get(shard);
        if (indices) indices.push(index);
        else byShard.set(shard, [index]);
      } catch (error) {
        if (!(error instanceof ReplyError)) throw error;
        results[index] = { error: error.message };
      }
    });
    await this.#confirm(signal);
    await Promise.all(
      [...byShard].map(async ([shard, indices]) => {
        const body = JSON.stringify(indices.map((index) => texts[index]));
        const answer = await this.#send(this.#namespace, shard, {
          method: "POST",
          body,
          ...(signal && { signal }),
        });
        const answers = (await answer.json()) as CommandResult[];
        indices.forEach((index, position) => {
          results[index] = answers[position]!;
        });
      }),
    );
    return results;
  }

  /** Subscribes to a channel. */
  async subscribe(channel: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    await this.#confirm(signal);
    const shard = shardOf(tagOf(channel), this.#shards);
    const { body } = await this.#send(this.#namespace, shard, { method: "POST", signal }, { channel });
    return body!;
  }

  /**
   * Asks the object that all find, whatever they say of shards and of a jurisdiction, whether this is how the server's keys
   * are placed: an object that is new could not know. It is the first one outside of jurisdictions. A server without these
   * options has only this object, and asks it anyway.
   */
  async #confirm(signal: AbortSignal | undefined): Promise<void> {
    if (this.#shards === 1 && this.#namespace === this.#binding) return;
    const known = confirmed.get(this.#binding) ?? new Set();
    confirmed.set(this.#binding, known);
    const server = `${this.#name}: ${this.#placement}`;
    if (known.has(server)) return;
    await this.#send(this.#binding, 0, { method: "POST", body: "[]", ...(signal && { signal }) });
    known.add(server);
  }

  /** Sends a request to an object. With a channel it subscribes. */
  async #send(
    namespace: LockServerNamespace,
    shard: number,
    init: RequestInit,
    subscription?: { readonly channel: string },
  ): Promise<Response> {
    const id = namespace.idFromName(`${this.#name}:${shard}`);
    const hint = this.#locationHint ? { locationHint: this.#locationHint as never } : undefined;
    const query = new URLSearchParams({ placement: this.#placement, ...subscription });
    const url = `https://lock-server/${subscription ? "subscribe" : ""}?${query}`;
    const answer = await namespace.get(id as never, hint).fetch(url, init);
    if (answer.status === 200) return answer;
    const said = (await answer.json().catch(() => ({}))) as { error?: unknown };
    throw new Refusal(answer.status, String(said.error ?? `the object answered ${answer.status}`));
  }
}

function checkBinding(binding: LockServerNamespace): void {
  if (typeof Object(binding).idFromName !== "function") {
    throw wrongType(
      "the namespace",
      binding,
      "a binding of a LockServer, for example env.LOCKS; is it in the Wrangler configuration?",
    );
  }
  const { jurisdiction } = Object(binding.idFromName("locks:0")) as { jurisdiction?: string };
  if (jurisdiction) {
    throw new TypeError(
      `the namespace is within a jurisdiction, so others would not find it: give the binding itself, and jurisdiction: ${JSON.stringify(jurisdiction)} as an option`,
    );
  }
}

function within(binding: LockServerNamespace, jurisdiction: string): LockServerNamespace {
  try {
    return binding.jurisdiction!(jurisdiction as never);
  } catch (error) {
    const { message } = error as Error;
    throw new TypeError(`the platform refuses the jurisdiction ${JSON.stringify(jurisdiction)}: ${message}`);
  }
}
