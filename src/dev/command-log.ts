/** One command that an endpoint was asked to run. */
export interface LoggedCommand {
  /** The command with its arguments, as the client sent it. */
  readonly command: readonly string[];
  /** Commands that Upstash would bill for it: itself, and each `redis.call` of a script. */
  readonly billed: number;
  /** When it was run: ms since 1970. */
  readonly at: number;
  /** How long the engine took, in ms. */
  readonly ms: number;
  /** `refused`: not run at all, because the REST API or the token does not allow it. */
  readonly outcome: "ok" | "error" | "refused";
  /** The error, where there was one. */
  readonly error?: string;
}

/**
 * What an endpoint has done, and what it would have cost. The counts go on for ever; of the entries the last
 * 10 000 are kept.
 *
 * @example
 * endpoint.log.reset();
 * await lock.release();
 * console.log(endpoint.log.requests, endpoint.log.billed); // 1 3
 */
export class CommandLog {
  #entries: LoggedCommand[] = [];
  #requests = 0;
  #billed = 0;
  readonly #onEntry: ((entry: LoggedCommand) => void) | undefined;

  /** `onEntry` is told of every command. */
  constructor(onEntry?: (entry: LoggedCommand) => void) {
    this.#onEntry = onEntry;
  }

  /** The commands, oldest first. A request that a fault ate has none, one that was duplicated has two. */
  get entries(): readonly LoggedCommand[] {
    return this.#entries;
  }

  /** HTTP requests that arrived, whatever became of them. */
  get requests(): number {
    return this.#requests;
  }

  /** The sum of what all commands since the last reset are billed. */
  get billed(): number {
    return this.#billed;
  }

  /** Notes that a request arrived. */
  countRequest(): void {
    this.#requests++;
  }

  /** Notes a command. */
  add(entry: LoggedCommand): void {
    this.#billed += entry.billed;
    this.#entries.push(entry);
    if (this.#entries.length > 11_000) this.#entries = this.#entries.slice(-10_000);
    this.#onEntry?.(entry);
  }

  /** Forgets everything and counts from zero. */
  reset(): void {
    this.#entries = [];
    this.#requests = 0;
    this.#billed = 0;
  }
}
