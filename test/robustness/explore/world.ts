import type { Command } from "../../../src/endpoints/endpoint.ts";
import { type Request, readRequest } from "../sim/request.ts";
import { Client, epoch, type Timer } from "./client.ts";
import { intern } from "./intern.ts";
import type { Answer, Contents, Store } from "./store.ts";

/** One endpoint of a world. */
export interface Server {
  readonly name: string;
  contents: Contents;
  /** Everything that has been executed there, by the nonce that it was about: see {@link intern}. */
  readonly executed: Map<string, number>;
  /** It is away until then, in ms. */
  awayUntil: number;
  /** When it lost its memory, in ms; -Infinity: never. */
  forgotAt: number;
}

/** The longest word of a command that endpoints accept: longer than every script. */
export const longestWord = 20_000;
export const tooLarge = `ERR max request size exceeded. Limit: ${longestWord} bytes`;

/** What may be wrong with an HTTP answer: a gateway's status, or an error beside the result. It proves nothing. */
export type Flaw = "status" | "error";

/** Something under way to an endpoint or to a client. */
export interface Message {
  /** Unique, and the same in every schedule with the same beginning. */
  readonly id: string;
  /** Messages of one client in this order. */
  readonly order: number;
  /** The client that sent it, or that it goes to. */
  readonly client: Client;
  /** The endpoint; undefined: a letter from another client. */
  readonly server: Server | undefined;
  readonly command: Command;
  readonly commandId: number;
  readonly request: Request | undefined;
  /** Until when the client waits for the answer, in ms. */
  readonly awaitedUntil: number;
  /** A second execution whose answer nobody hears. */
  readonly isCopy: boolean;
  /** A deviation has put it aside; it goes on whenever the schedule says so. */
  isLate: boolean;
  /** Whether the client still waits for the answer. */
  isOpen: boolean;
  /** Set once it was executed. */
  answer: Answer | undefined;
  answerId: number;
  /** Gives the client its answer. */
  readonly deliver: (answer: Answer, flaw?: Flaw) => void;
}

/** What a step may have changed, to see which late requests it makes no difference to. */
export interface Effect {
  readonly server?: Server | undefined;
  readonly client?: Client | undefined;
  readonly message?: Message | undefined;
  /** Time, or anything else. */
  readonly everything?: boolean;
}

/** Who is told what happens. */
export interface Watcher {
  sent(message: Message): void;
  executed(message: Message, before: Contents, after: Contents): void;
  delivered(message: Message): void;
}

/** The shape of a world. */
export interface WorldOptions {
  readonly store: Store;
  readonly servers: number;
  /** By client: by how many ms its wall clock is ahead. */
  readonly clocks: readonly number[];
  /** How fast the endpoints' clocks run; the clients' are exact. */
  readonly rate: number;
  readonly traced: boolean;
}

/** One small world in one state: endpoints, clients, messages and timers. It changes step by step. */
export class World {
  /** Virtual ms since the world began. */
  time = 0;
  readonly servers: readonly Server[];
  readonly clients: readonly Client[];
  messages: Message[] = [];
  /** The client whose messages go first, until the next timer. */
  leader = 0;
  /** The number of all that the checks have noted so far: see {@link intern}. */
  facts = 0;
  /** Names of the events that have occurred: each occurs once at most. */
  readonly events = new Set<string>();
  effect: Effect = {};
  watcher: Watcher | undefined;
  /** The number of the step, for the trace. */
  step = 0;
  /** One line for each thing that happens, with the step and the time, if traced. */
  readonly lines: string[] | undefined;
  readonly store: Store;
  readonly #rate: number;
  #moments = 0;

  constructor({ store, servers, clocks, rate, traced }: WorldOptions) {
    this.store = store;
    this.#rate = rate;
    this.lines = traced ? [] : undefined;
    this.servers = Array.from({ length: servers }, (_, index) => ({
      name: `r${index}`,
      contents: store.empty,
      executed: new Map(),
      awayUntil: 0,
      forgotAt: Number.NEGATIVE_INFINITY,
    }));
    this.clients = clocks.map((ahead, index) => new Client(index, () => this.time, ahead));
  }

  trace(line: () => string): void {
    this.lines?.push(`${String(this.step).padStart(4)} ${this.time.toFixed(1).padStart(8)}  ${line()}`);
  }

  /** Remembers something that later checks depend on. */
  note(fact: string): void {
    this.facts = intern(`${this.facts} ${fact}`);
  }

  /** The time in ms, a little later with every call: what happens in one ms has an order. */
  moment(): number {
    this.#moments += 1;
    return this.time + 1e-6 * this.#moments;
  }

  /** The endpoints' clock, in ms since 1970. */
  serverTime(): number {
    return Math.floor(epoch + this.time * this.#rate);
  }

  /** What an endpoint has now: without what has expired. */
  contentsOf(server: Server): Contents {
    server.contents = this.store.at(server.contents, this.serverTime());
    return server.contents;
  }

  /** A client sends a command. */
  send(client: Client, server: Server, command: Command, deliver: Message["deliver"]): Message {
    client.sent += 1;
    const message: Message = {
      id: `${client.name}.${client.sent}`,
      order: client.sent,
      client,
      server,
      command,
      commandId: intern(command.join("\0")),
      request: readRequest(command),
      awaitedUntil: this.time + client.timeout,
      isCopy: false,
      isLate: false,
      isOpen: true,
      answer: undefined,
      answerId: 0,
      deliver,
    };
    this.messages.push(message);
    this.watcher?.sent(message);
    return message;
  }

  /** A client sends a text to another one. */
  post(from: Client, to: Client, text: string, deliver: () => void): void {
    from.sent += 1;
    this.messages.push({
      id: `${from.name}.${from.sent}`,
      order: -from.sent,
      client: to,
      server: undefined,
      command: [],
      commandId: 0,
      request: undefined,
      awaitedUntil: Number.POSITIVE_INFINITY,
      isCopy: false,
      isLate: false,
      isOpen: true,
      answer: { reply: text },
      answerId: intern(text),
      deliver,
    });
  }

  /** An endpoint executes a message. */
  execute(message: Message): void {
    const { server, command, commandId, client, request } = message;
    if (!server || !request) return;
    this.effect = { server, message };
    const now = this.serverTime();
    const before = this.contentsOf(server);
    if (server.awayUntil > this.time) {
      message.answer = { refused: "away" };
      message.answerId = 0;
    } else if (command.some((word) => typeof word === "string" && word.length > longestWord)) {
      message.answer = { refused: tooLarge };
      message.answerId = intern(tooLarge);
    } else {
      const { answer, answerId, contents } = this.store.execute(before, now, command, commandId);
      server.contents = contents;
      message.answer = answer;
      message.answerId = answerId;
      this.#remember(server, message);
      this.watcher?.executed(message, before, contents);
    }
    this.trace(() => `${client.name}>${server.name} ${describe(message)} = ${answerText(message)}`);
    // Nobody would hear its answer.
    if (!message.isOpen) this.#remove(message);
  }

  /** A client gets the answer to its message. */
  deliver(message: Message, flaw?: Flaw): void {
    const { client, server, id, answer, answerId } = message;
    this.#remove(message);
    this.effect = { client };
    if (!message.isOpen || !answer) return;
    this.trace(
      () => `${client.name}<${server?.name ?? "mail"} ${describe(message)} = ${answerText(message)}`,
    );
    client.receive(`${id} ${answerId} ${flaw}`);
    message.isOpen = false;
    if (server && !flaw) this.watcher?.delivered(message);
    message.deliver(answer, flaw);
  }

  /** A message never arrives. */
  lose(message: Message): void {
    this.#remove(message);
  }

  /** Puts a second copy of a request aside. */
  repeat(message: Message): void {
    this.messages.push({ ...message, id: `${message.id}+`, isCopy: true, isLate: true, isOpen: false });
  }

  /** Fires a timer; time passes until then. */
  fire(client: Client, timer: Timer): void {
    this.effect = { everything: true };
    this.leader = 0;
    this.time = Math.max(this.time, timer.due + client.frozenFor);
    client.timers.delete(timer);
    client.receive(`timer ${timer.serial}`);
    this.trace(() => `${client.name} timer`);
    timer.callback();
    this.dropUnheard();
  }

  /** Removes answers that nobody waits for any more: they make no difference. */
  dropUnheard(): void {
    if (this.messages.some(isUnheard)) this.messages = this.messages.filter((message) => !isUnheard(message));
  }

  /**
   * A text that is the same for two states only if everything that can follow is the same, for the same choices. A
   * client is in it with all that it has received: from that follows what the library inside it knows.
   */
  key(): string {
    const servers = this.servers.map((server) => {
      const executed = [...server.executed].sort(([a], [b]) => (a < b ? -1 : 1)).join(" ");
      return `${this.contentsOf(server).id} ${intern(executed)} ${Math.max(0, server.awayUntil - this.time)}`;
    });
    const clients = this.clients.map(({ history, frozen }) => `${history}${frozen ? "f" : ""}`);
    const messages = this.messages
      .map(({ id, client, isLate, answer, answerId }) =>
        [client.index, id, isLate ? "l" : "", answer ? answerId : ""].join(" "),
      )
      .sort();
    return [
      this.time,
      this.leader,
      this.facts,
      ...this.events,
      ...clients,
      ...servers,
      intern(messages.join()),
    ].join("|");
  }

  /** The order in which things were executed matters to checks only where they are about the same nonce. */
  #remember({ executed }: Server, { request, id, isOpen, answerId }: Message): void {
    const { value } = request!;
    executed.set(value, intern(`${executed.get(value) ?? 0} ${id} ${isOpen} ${answerId} ${this.time}`));
  }

  #remove(message: Message): void {
    this.messages = this.messages.filter((other) => other !== message);
  }
}

function isUnheard({ answer, isOpen }: Message): boolean {
  return answer !== undefined && !isOpen;
}

/** A message in short, for the trace. */
function describe({ id, request, command }: Message): string {
  if (!request) return id;
  const { operation, keys, value } = request;
  return `${id} ${operation} ${keys.join()} ${value.slice(0, 8)}${value.slice(33)} (${String(command[0])})`;
}

function answerText({ answer }: Message): string {
  if (!answer) return "";
  return "reply" in answer ? JSON.stringify(answer.reply) : answer.refused;
}
