import { type Engine, ReplyError } from "../testing/engine.ts";
import { type Backend, type Outcome, wireReply } from "./backend.ts";

/** The embedded engine as a backend. Its commands are synchronous, so a transaction is a plain loop. */
export class EmbeddedBackend implements Backend {
  readonly #engine: Engine;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async execute(command: readonly string[]): Promise<Outcome> {
    return this.#run(command);
  }

  async transaction(commands: readonly (readonly string[])[]): Promise<readonly Outcome[] | ReplyError> {
    return commands.map((command) => this.#run(command));
  }

  async close(): Promise<void> {
    this.#engine.flush();
  }

  #run(command: readonly string[]): Outcome {
    const before = this.#engine.billed;
    let reply: Outcome["reply"];
    try {
      reply = wireReply(this.#engine.execute(command));
    } catch (error) {
      if (!(error instanceof ReplyError)) throw error;
      reply = error;
    }
    return { reply, billed: this.#engine.billed - before };
  }
}
