import { ReplyError } from "../../../lock-server/src/engine/reply-error.ts";
import type { Engine } from "../engine/engine.ts";
import { type Backend, type Command, nameOf, type Outcome, type Subscriber } from "./backend.ts";

/**
 * An {@link Engine} in this process as a backend. Commands are synchronous, so a transaction is a plain loop.
 */
export class EmbeddedBackend implements Backend {
  readonly #engine: Engine;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async execute(command: Command): Promise<Outcome> {
    return this.#run(command);
  }

  async transaction(commands: readonly Command[]): Promise<readonly Outcome[] | ReplyError> {
    if (commands.some((command) => this.#engine.refusal(command))) {
      return new ReplyError("EXECABORT Transaction discarded because of previous errors.");
    }
    return commands.map((command) => this.#run(command));
  }

  async subscribe(command: Command, subscriber: Subscriber): Promise<(() => void) | ReplyError> {
    if (nameOf(command) === "PSUBSCRIBE") return this.#engine.refusal(["PSUBSCRIBE"])!;
    return this.#engine.subscribe(command.slice(1), (push) => subscriber.push(push));
  }

  async close(): Promise<void> {
    this.#engine.flush();
  }

  #run(command: Command): Outcome {
    const before = this.#engine.billed;
    // Also a command that the engine refuses is billed, as with a redis-server.
    const billed = () => Math.max(1, this.#engine.billed - before);
    try {
      return { reply: this.#engine.execute(command), billed: billed() };
    } catch (error) {
      if (!(error instanceof ReplyError)) throw error;
      return { reply: error, billed: billed() };
    }
  }
}
