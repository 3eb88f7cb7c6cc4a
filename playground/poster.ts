import type { Lock, Redlock } from "../src/index.ts";
import { Mailbox } from "../src/sync/index.ts";
import type { Actor, Slot } from "./actor.ts";
import type { Chat } from "./chat.ts";
import type { Client } from "./client.ts";
import { Link } from "./link.ts";
import { listKey, thread } from "./names.ts";
import type { World } from "./world.ts";

/** Counts the messages of a world, and answers them. */
export interface Conversation {
  readonly chat: Chat;
  readonly isGuarded: boolean;
  messages: number;
}

/** A process that gets messages of a conversation, which must be answered one after another. */
export class Poster implements Actor {
  readonly client: Client;
  readonly #conversation: Conversation;
  readonly #redlock: Redlock;
  readonly #mailbox: Mailbox<string>;
  readonly #list: Link;
  #open = 0;
  #last = "has received nothing";

  constructor(client: Client, world: World, conversation: Conversation) {
    this.client = client;
    this.#conversation = conversation;
    this.#redlock = client.redlock();
    this.#mailbox = new Mailbox<string>(this.#redlock, thread);
    this.#list = new Link(client, world.endpoints[0]!);
  }

  get says(): string {
    return `${this.client.isFrozen ? "frozen, " : ""}${this.isBusy ? "is at work" : this.#last}`;
  }

  get isBusy(): boolean {
    return this.#open > 0;
  }

  readonly slots: readonly Slot[] = [
    [{ label: "Post a message", isPossible: () => !this.client.isFrozen, act: () => this.post() }],
  ];

  /** It gets a message. */
  async post(): Promise<void> {
    const { client } = this;
    const conversation = this.#conversation;
    conversation.messages += 1;
    const message = `message ${conversation.messages}`;
    client.calls += 1;
    const about = { operation: message, key: thread, call: `${client.calls}` };
    client.record({ phase: "called", ...about });
    this.#open += 1;
    try {
      const name = await (conversation.isGuarded ? this.#toMailbox(message) : this.#byHand(message));
      this.#last = `${message}: ${name}`;
      client.record({ phase: "returned", ...about, outcome: "granted", name });
    } catch (error) {
      this.#last = `${message}: failed`;
      client.record({ phase: "returned", ...about, outcome: "error", detail: String(error) });
    }
    this.#open -= 1;
  }

  async #toMailbox(message: string): Promise<string> {
    const { client } = this;
    client.doing = "post";
    // Its name says who has posted it.
    const { status } = await this.#mailbox.post(
      { id: `${message}/${client.name}`, value: message },
      async (messages) => {
        for await (const { value } of messages) await this.#conversation.chat.answer(client, value);
      },
    );
    return status;
  }

  /** With a lock, and a list of what arrives while somebody else has it. */
  async #byHand(message: string): Promise<string> {
    const { client } = this;
    const { chat } = this.#conversation;
    client.doing = "acquire";
    const lock: Lock | undefined = await this.#redlock.acquire(thread, { wait: 0 }).catch(() => undefined);
    if (!lock) {
      await this.#ask("add", [
        "ZADD",
        listKey,
        "GT",
        Math.ceil(client.world.time.elapsed),
        `${message}/${client.name}`,
      ]);
      return "listed";
    }
    await chat.answer(client, message);
    for (let next = await this.#look(); next !== undefined; next = await this.#look()) {
      await chat.answer(client, next.split("/")[0]!);
      await this.#ask("remove", ["ZREM", listKey, next]);
    }
    client.doing = "release";
    await lock.release();
    return "handled";
  }

  async #look(): Promise<string | undefined> {
    const [first] = (await this.#ask("look", ["ZRANGE", listKey, 0, 0])) as string[];
    return first;
  }

  #ask(doing: string, command: (string | number)[]): Promise<unknown> {
    this.client.doing = doing;
    return this.#list.send(command, new AbortController().signal);
  }
}
