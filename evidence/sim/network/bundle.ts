import type { Draw } from "../draw.ts";
import { type Answer, type Carrier, failure, type LinkOptions, type Message } from "./link.ts";

/** How often a server dies before it has executed all commands of a request. */
const diesBetween = 0.05;

type BundleOptions = Pick<LinkOptions, "world" | "server" | "carrier">;

/** Carries the messages that share an HTTP request as one: they are lost, late, or executed twice together. */
export class BundlingCarrier implements Carrier {
  readonly #options: BundleOptions;
  readonly #draw: Draw;
  #bundle: Message[] | undefined;

  constructor(options: BundleOptions, draw: Draw) {
    this.#options = options;
    this.#draw = draw;
  }

  carry(message: Message): void {
    if (this.#bundle) this.#bundle.push(message);
    else this.#options.carrier.carry(message);
  }

  /** Carries all messages that `send` sends as one. */
  together<Result>(send: () => Result): Result {
    const bundle: Message[] = [];
    this.#bundle = bundle;
    const result = send();
    this.#bundle = undefined;
    const [first] = bundle;
    if (bundle.length === 1) this.#options.carrier.carry(first!);
    else if (first) this.#options.carrier.carry(this.#bundled(first, bundle));
    return result;
  }

  #bundled({ command, request }: Message, bundle: readonly Message[]): Message {
    const { world, server } = this.#options;
    // The answers to a bundle travel as the reply to its first message.
    const asReply = (answers: readonly Answer[]): Answer => ({ reply: answers as never });
    const answersIn = (answer: Answer) =>
      "reply" in answer ? (answer.reply as unknown as Answer[]) : undefined;
    return {
      command,
      request,
      commands: bundle.length,
      isOpen: () => bundle.some(({ isOpen }) => isOpen()),
      execute: (copy) => {
        // Not while a crowd comes: a rollback that is lost leaves its value.
        if (server.pace > 0 || !this.#draw.chance(diesBetween))
          return asReply(bundle.map(({ execute }) => execute(copy)));
        world.count("pipeline executed in part");
        for (const { execute } of bundle.slice(0, this.#draw.integer(1, bundle.length - 1))) execute(copy);
        return failure(server, "network", "connection reset");
      },
      answer: (answer) => {
        const answers = answersIn(answer);
        bundle.forEach((message, index) => void message.answer(answers?.[index] ?? answer));
      },
    };
  }
}
