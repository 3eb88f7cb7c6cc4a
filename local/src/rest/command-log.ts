import { Buffer } from "node:buffer";

/** One command that an endpoint received. */
export interface LoggedCommand {
  /**
   * The command with its arguments, as the client sent them, but at most the first 100 arguments and the first 1 000
   * characters of each; a note at the end says how much was cut. Bytes that are not valid UTF-8 become U+FFFD.
   */
  readonly command: readonly string[];
  /** Commands that Upstash would bill for it: itself, and each `redis.call` of a script. */
  readonly billed: number;
  /** When it was executed, in ms since 1970. */
  readonly at: number;
  /** How long the execution took, in ms. */
  readonly ms: number;
  /** `refused`: not executed, because the REST API or the token does not allow it. */
  readonly outcome: "ok" | "error" | "refused";
  /** The first 1 000 characters of the error, if there was one. */
  readonly error?: string;
}

const longestText = 1_000;
const mostArguments = 100;
const mostEntries = 1_000;

/**
 * The commands that an endpoint received, and what Upstash would bill for them. Keeps at least the last 1 000
 * commands. The counts cover all commands since the last reset.
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

  /** `onEntry` is called with every entry, in the form in which it is kept. */
  constructor(onEntry?: (entry: LoggedCommand) => void) {
    this.#onEntry = onEntry;
  }

  /** The commands, oldest first. A request that a fault dropped has no entry, a duplicated one has two. */
  get entries(): readonly LoggedCommand[] {
    return this.#entries;
  }

  /** HTTP requests that arrived since the last reset, dropped ones included. */
  get requests(): number {
    return this.#requests;
  }

  /** Commands billed since the last reset: the sum over all commands, also those no longer kept. */
  get billed(): number {
    return this.#billed;
  }

  /** Counts an HTTP request. */
  countRequest(): void {
    this.#requests++;
  }

  /** Adds a command. */
  add(entry: LoggedCommand): void {
    const kept = shortened(entry);
    this.#billed += kept.billed;
    this.#entries.push(kept);
    // Trimmed only at a tenth above the limit: trimming at every entry would copy all others each time.
    if (this.#entries.length > 1.1 * mostEntries) this.#entries = this.#entries.slice(-mostEntries);
    this.#onEntry?.(kept);
  }

  /** Removes all entries and counts from zero. */
  reset(): void {
    this.#entries = [];
    this.#requests = 0;
    this.#billed = 0;
  }
}

function shortened(entry: LoggedCommand): LoggedCommand {
  const { command, error } = entry;
  const omitted = command.length - mostArguments;
  const words = command.slice(0, mostArguments).map(beginning);
  if (omitted > 0) words.push(`… (${omitted} more)`);
  return { ...entry, command: words, ...(error !== undefined && { error: beginning(error) }) };
}

function beginning(text: string): string {
  if (text.length <= longestText) return text;
  // Copied by way of bytes: a slice of a string keeps the whole string in memory.
  const copy = Buffer.from(text.slice(0, longestText)).toString();
  return `${copy}… (${text.length} characters)`;
}
