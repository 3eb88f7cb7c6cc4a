import type { Client } from "./client.ts";
import { write } from "./storage.ts";
import type { World } from "./world.ts";

/** A conversation: where messages are answered. */
export class Chat {
  readonly answered: string[] = [];
  #messages = 0;
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  newMessage(): string {
    this.#messages += 1;
    return `message ${this.#messages}`;
  }

  async answer(client: Client, message: string): Promise<void> {
    const arrive = () => {
      this.answered.push(message);
      return undefined;
    };
    await write(this.#world, client, { operation: `answer ${message}`, arrive });
  }

  /** Nobody comes any more: what was posted, and was not answered, is stuck. */
  close(message: string): void {
    const isAnswered = this.answered.includes(message);
    const name = `${message} IS ${isAnswered ? "ANSWERED" : "STUCK"}`.toUpperCase();
    this.#world.judge(isAnswered ? "upheld" : "violated", name);
  }
}
