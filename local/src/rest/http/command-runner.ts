import { Buffer } from "node:buffer";
import { performance } from "node:perf_hooks";
import { ReplyError } from "../../../../lock-server/src/engine/reply-error.ts";
import { eventOf, eventStream } from "../../event-stream.ts";
import { type Backend, type Command, nameOf, type Outcome } from "../backend.ts";
import type { CommandLog } from "../command-log.ts";
import type { WireReply } from "../redis/resp.ts";
import { noPermission, refusal } from "./command-access.ts";

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
  readonly #log: CommandLog;

  constructor(backend: Backend, log: CommandLog) {
    this.#backend = backend;
    this.#log = log;
  }

  /**
   * Runs one command. A refused or failing command resolves with a `ReplyError` as its reply. Rejects when the backend
   * cannot be reached.
   */
  async run(command: Command, caller: Caller): Promise<Outcome> {
    const note = this.#begin();
    const refused = refusal(command, caller.readOnly);
    if (refused) return note(command, { reply: refused, billed: 0 });
    const outcome = note(command, await this.#backend.execute(command));
    caller.onCommand?.(command, outcome);
    return outcome;
  }

  /**
   * Runs all commands with nothing in between. Resolves with a single `ReplyError` when the transaction was discarded:
   * because of a command that is not available, or by the backend. Rejects when the backend cannot be reached.
   */
  async transaction(commands: readonly Command[], caller: Caller): Promise<readonly Outcome[] | ReplyError> {
    const note = this.#begin();
    for (const command of commands) {
      const refused = refusal(command, caller.readOnly);
      if (!refused) continue;
      note(command, { reply: refused, billed: 0 });
      return new ReplyError(`EXECABORT Transaction discarded because of: ${refused.message}`);
    }
    const outcomes = await this.#backend.transaction(commands);
    if (outcomes instanceof ReplyError) return outcomes;
    for (const [index, outcome] of outcomes.entries()) {
      note(commands[index]!, outcome);
      caller.onCommand?.(commands[index]!, outcome);
    }
    return outcomes;
  }

  /**
   * Opens the stream of SUBSCRIBE or PSUBSCRIBE, and resolves with its body once Redis has confirmed it, or with the error
   * when it is refused. Its begin and its end are a command each. Rejects when the backend cannot be reached.
   */
  async subscribe(
    [name = "", ...names]: Command,
    { readOnly }: Caller,
  ): Promise<ReadableStream | ReplyError> {
    const note = this.#begin();
    const command = [name.toUpperCase(), ...names];
    const isEmpty = names.length === 0;
    if (readOnly || isEmpty) {
      const arity = new ReplyError(`ERR wrong number of arguments for '${name.toLowerCase()}' command`);
      const reply = readOnly ? noPermission(command) : arity;
      note(command, { reply, billed: 0 });
      return reply;
    }
    // Set below. A stream that overflows or breaks before that is ended afterwards.
    let unsubscribe: (() => void) | undefined;
    let ended = false;
    const stream = eventStream(() => {
      ended = true;
      unsubscribe?.();
    });
    const subscribed = await this.#backend.subscribe(command, {
      push: (words) => stream.send(eventOf(words.map(textOf))),
      lost: (error) => stream.end(error),
    });
    note(command, { reply: subscribed instanceof ReplyError ? subscribed : null, billed: 1 });
    if (subscribed instanceof ReplyError) return subscribed;
    unsubscribe = () => {
      subscribed();
      this.#begin()([nameOf(command).replace("SUB", "UNSUB"), ...names], { reply: null, billed: 1 });
    };
    if (ended) unsubscribe();
    return stream.body;
  }

  /** A function that notes commands which have begun now. Without a cost, a command was refused. */
  #begin(): (command: Command, outcome: Outcome) => Outcome {
    const [at, started] = [Date.now(), performance.now()];
    return (command, outcome) => {
      const { reply, billed } = outcome;
      const error = reply instanceof ReplyError ? { error: reply.message } : undefined;
      this.#log.add({
        command,
        billed,
        at,
        ms: performance.now() - started,
        outcome: billed === 0 ? "refused" : error ? "error" : "ok",
        ...error,
      });
      return outcome;
    };
  }
}

/** A part of a push. */
function textOf(part: WireReply): string {
  return part instanceof Uint8Array ? Buffer.from(part).toString() : String(part);
}
