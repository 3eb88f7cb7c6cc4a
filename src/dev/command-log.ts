import { Buffer } from "node:buffer";

/** One command that an endpoint was asked to run. */
export interface LoggedCommand {
  /**
   * The command with its arguments, as the client sent them, within limits: of an argument the first 1 000
   * characters, of a command the first 100 arguments; what is left out is told at the end. Bytes that are not UTF-8
   * show as U+FFFD.
   */
  readonly command: readonly string[];
  /** Commands that Upstash would bill for it: itself, and each `redis.call` of a script. */
  readonly billed: number;
  /** When it was run: ms since 1970. */
  readonly at: number;
  /** How long the engine took, in ms. */
  readonly ms: number;
  /** `refused`: not run at all, because the REST API or the token does not allow it. */
  readonly outcome: "ok" | "error" | "refused";
  /** The error, where there was one; its first 1 000 characters. */
  readonly error?: string;
}

const longestText = 1_000;
const mostArguments = 100;
const mostEntries = 10_000;
// Of all entries together: with two bytes for each, 16 MB.
const mostCharacters = 8_000_000;

/**
 * What an endpoint has done, and what it would have cost. The counts go on for ever. Of the entries the last 10 000
 * are kept, or fewer if these are long: as many as have 8 million characters together.
 *
 * @example
 * endpoint.log.reset();
 * await lock.release();
 * console.log(endpoint.log.requests, endpoint.log.billed); // 1 3
 */
export class CommandLog {
  #entries: LoggedCommand[] = [];
  #characters = 0;
  #requests = 0;
  #billed = 0;
  readonly #onEntry: ((entry: LoggedCommand) => void) | undefined;

  /** `onEntry` is told of every command, in the form in which it is kept. */
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
    const kept = shortened(entry);
    this.#billed += kept.billed;
    this.#characters += charactersOf(kept);
    this.#entries.push(kept);
    // A tenth more than is kept, so that not every entry moves all the others.
    if (this.#entries.length > 1.1 * mostEntries || this.#characters > 1.1 * mostCharacters) this.#trim();
    this.#onEntry?.(kept);
  }

  /** Forgets everything and counts from zero. */
  reset(): void {
    this.#entries = [];
    this.#characters = 0;
    this.#requests = 0;
    this.#billed = 0;
  }

  #trim(): void {
    let first = this.#entries.length;
    let characters = 0;
    while (first > 0 && this.#entries.length - first < mostEntries) {
      const next = characters + charactersOf(this.#entries[first - 1]!);
      if (next > mostCharacters) break;
      characters = next;
      first--;
    }
    this.#entries = this.#entries.slice(first);
    this.#characters = characters;
  }
}

function shortened(entry: LoggedCommand): LoggedCommand {
  const { command, error } = entry;
  const left = command.length - mostArguments;
  const words = command.slice(0, mostArguments).map(beginning);
  if (left > 0) words.push(`… (${left} more)`);
  return { ...entry, command: words, ...(error !== undefined && { error: beginning(error) }) };
}

function beginning(text: string): string {
  if (text.length <= longestText) return text;
  // By way of bytes: a part of a string keeps all of it in memory.
  const copy = Buffer.from(text.slice(0, longestText)).toString();
  return `${copy}… (${text.length} characters)`;
}

function charactersOf({ command, error = "" }: LoggedCommand): number {
  return command.reduce((sum, word) => sum + word.length, error.length);
}
