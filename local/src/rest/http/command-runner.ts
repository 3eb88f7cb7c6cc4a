import { performance } from "node:perf_hooks";
import { ReplyError } from "../../../../lock-server/src/engine/reply-error.ts";
import type { Backend, Command, Outcome } from "../backend.ts";
import type { CommandLog } from "../command-log.ts";
import { refusal } from "./command-access.ts";

/** Is called for each command that is executed. */
export type OnCommand = (command: Command, outcome: Outcome) => void;

/** The HTTP request that a command belongs to. */
export interface Caller {
  /** Whether its token only allows reading. */
  readonly readOnly: boolean;
  readonly onCommand?: OnCommand | undefined;
}

/** Runs the commands of HTTP requests: checks access, and logs each command with its cost. */
export class CommandRunner {
  readonly #backend: Backend;
  readonly #log: CommandLog | undefined;

  constructor(backend: Backend, log: CommandLog | undefined) {
    this.#backend = backend;
    this.#log = log;
  }

  /**
   * Runs one command. A refused or failing command resolves with a `ReplyError` as its reply. Rejects when the backend
   * cannot be reached.
   */
  async run(command: Command, caller: Caller): Promise<Outcome> {
    const started = now();
    const error = refusal(command, caller.readOnly);
    if (error !== undefined) return this.#refuse(command, error);
    const outcome = await this.#backend.execute(command);
    this.#note(command, outcome, started);
    caller.onCommand?.(command, outcome);
    return outcome;
  }

  /**
   * Runs all commands with nothing in between. Resolves with a single `ReplyError` when the transaction was discarded:
   * because of a command that is not available, or by the backend. Rejects when the backend cannot be reached.
   */
  async transaction(commands: readonly Command[], caller: Caller): Promise<readonly Outcome[] | ReplyError> {
    for (const command of commands) {
      const error = refusal(command, caller.readOnly);
      if (error === undefined) continue;
      this.#refuse(command, error);
      return new ReplyError(`EXECABORT Transaction discarded because of: ${error}`);
    }
    const started = now();
    const outcomes = await this.#backend.transaction(commands);
    if (outcomes instanceof ReplyError) return outcomes;
    for (const [index, outcome] of outcomes.entries()) {
      this.#note(commands[index]!, outcome, started);
      caller.onCommand?.(commands[index]!, outcome);
    }
    return outcomes;
  }

  #refuse(command: Command, message: string): Outcome {
    const error = new ReplyError(message);
    this.#log?.add({ ...entryOf(command, now()), billed: 0, outcome: "refused", error: message });
    return { reply: error, billed: 0 };
  }

  #note(command: Command, { reply, billed }: Outcome, started: Moment): void {
    const failed = reply instanceof ReplyError;
    this.#log?.add({
      ...entryOf(command, started),
      billed,
      outcome: failed ? "error" : "ok",
      ...(failed && { error: reply.message }),
    });
  }
}

/** A time by both clocks: `at` in ms since 1970, `monotonic` in ms. */
interface Moment {
  readonly at: number;
  readonly monotonic: number;
}

function now(): Moment {
  return { at: Date.now(), monotonic: performance.now() };
}

function entryOf(command: Command, { at, monotonic }: Moment) {
  return { command, at, ms: performance.now() - monotonic };
}
