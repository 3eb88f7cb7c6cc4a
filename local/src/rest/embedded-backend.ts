import { Buffer } from "node:buffer";
import { ReplyError } from "../../../lock-server/src/engine/reply-error.ts";
import type { Reply } from "../../../lock-server/src/twins/twin.ts";
import type { Engine } from "../engine/engine.ts";
import { type Backend, type Command, nameOf, type Outcome, type Subscriber } from "./backend.ts";
import { StatusReply, type WireReply } from "./redis/resp.ts";

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
    return this.#engine.subscribe(command.slice(1), (push) => subscriber.push(push.map(wireReply)));
  }

  async close(): Promise<void> {
    this.#engine.flush();
  }

  #run(command: Command): Outcome {
    const before = this.#engine.billed;
    let reply: WireReply;
    try {
      reply = wireReply(this.#engine.execute(command));
    } catch (error) {
      if (!(error instanceof ReplyError)) throw error;
      reply = error;
    }
    // Also a command that the engine refuses, as with a redis-server.
    return { reply, billed: Math.max(1, this.#engine.billed - before) };
  }
}

/** The engine does not tell a status from a string. Only OK is usually one. */
function wireReply(reply: Reply): WireReply {
  if (reply === "OK") return new StatusReply(reply);
  if (typeof reply === "string") return Buffer.from(reply);
  return Array.isArray(reply) ? reply.map(wireReply) : (reply as number | null);
}
