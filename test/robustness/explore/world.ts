import type { Dialect } from "../../../src/endpoints/endpoint.ts";
import type { Assumption, Invariant } from "../sim/assumptions.ts";
import { type Answer, failure, type Message as Request } from "../sim/link.ts";
import { epoch } from "../sim/process.ts";
import type { Scheduler } from "../sim/scheduler.ts";
import { Server } from "../sim/server.ts";
import { goodNetwork, World as SimulatedWorld } from "../sim/world.ts";
import { Choice, Client, type Timer } from "./client.ts";
import { type Contents, Memory } from "./contents.ts";
import { intern } from "./intern.ts";

/** One endpoint of a world. */
export class Endpoint extends Server {
  readonly memory: Memory;
  /** Everything that has been executed there, by the nonce that it was about: see {@link intern}. */
  /** Everything that has been executed there, by the nonce that it was about: see {@link intern}. */
  readonly #executed = new Map<string, number>();
  #summary: number | undefined;
  /** It is away until then, in ms. */
  awayUntil = 0;
  /** When it lost its memory, in ms. */
  forgotAt = Number.NEGATIVE_INFINITY;

  constructor(name: string, dialect: Dialect, scheduler: Scheduler, rate: number) {
    const engine = new Memory(dialect, () => Math.floor(epoch + scheduler.now * rate));
    super({ name, dialect, scheduler, rate, offset: 0, engine });
    this.memory = engine;
  }

  /** What it has now. */
  get contents(): Contents {
    return this.memory.contents;
  }

  /** The number of everything that has been executed there, in no order but that of each nonce. */
  get executed(): number {
    this.#summary ??= intern([...this.#executed].sort(([a], [b]) => (a < b ? -1 : 1)).join(" "));
    return this.#summary;
  }

  /** The order in which things were executed matters to checks only where they are about the same nonce. */
  remember({ request, id, isOpen, answerId }: Message, now: number): void {
    const { value } = request!.request;
    const before = this.#executed.get(value) ?? 0;
    this.#executed.set(value, intern(`${before} ${id} ${isOpen()} ${answerId} ${now}`));
    this.#summary = undefined;
  }
}

/** What may be wrong with an HTTP answer: a gateway's status, or an error beside the result. It proves nothing. */
export type Flaw = "status" | "error";

/** What the simulator's links draw for each. */
const drawn = { status: ["with a wrong status", 502], error: ["with result and error"] } as const;

const garbling = { ...goodNetwork, garbled: 1 };

/** Something under way to an endpoint or to a client. */
export interface Message {
  /** Unique, and the same in every schedule with the same beginning. */
  readonly id: string;
  /** Messages of one client in this order. */
  readonly order: number;
  /** The client that sent it, or that it goes to. */
  readonly client: Client;
  /** The endpoint, and what it is asked; undefined: a letter from another client. */
  readonly server: Endpoint | undefined;
  readonly request: Request | undefined;
  /** A second execution whose answer nobody hears. */
  readonly isCopy: boolean;
  /** A deviation has put it aside; it goes on whenever the schedule says so. */
  isLate: boolean;
  /** Whether the client still waits for the answer. */
  readonly isOpen: () => boolean;
  /** Set once it was executed. */
  answer: Answer | undefined;
  answerId: number;
  /** Gives the client its answer. */
  readonly deliver: (answer: Answer) => void;
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
  sent(client: Client, request: Request): void;
  executed(message: Message, before: Contents, after: Contents): void;
}

/** The shape of a world. */
export interface WorldOptions {
  readonly dialect: Dialect;
  readonly servers: number;
  /** By client: by how many ms its wall clock is ahead. */
  readonly clocks: readonly number[];
  /** How fast the endpoints' clocks run; the clients' are exact. */
  readonly rate: number;
  readonly traced: boolean;
}

/** One small world in one state: the simulator's, of which the search decides each step. */
export class World extends SimulatedWorld {
  override readonly servers: Endpoint[];
  override readonly processes: Client[];
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
  readonly #choice: Choice;
  #moments = 0;

  constructor({ dialect, servers, clocks, rate, traced }: WorldOptions) {
    const choice = new Choice();
    const apart = Math.max(...clocks) - Math.min(...clocks) > 50;
    super(choice, apart ? ["agreeing clocks"] : [], { traced, recorded: false });
    const { scheduler } = this;
    this.#choice = choice;
    this.servers = Array.from(
      { length: servers },
      (_, index) => new Endpoint(`r${index}`, dialect, scheduler, rate),
    );
    this.processes = clocks.map((ahead, index) => new Client(index, scheduler, ahead));
  }

  override trace(line: () => string): void {
    this.lines?.push(`${String(this.step).padStart(4)} ${this.now.toFixed(1).padStart(8)}  ${line()}`);
  }

  /** What happens in one ms has an order. */
  override moment(): number {
    this.#moments += 1;
    return this.now + 1e-6 * this.#moments;
  }

  override keeps(assumption: Assumption): boolean {
    if (assumption === "single execution") return !this.events.has("repeated");
    if (assumption === "kept memory") return !this.events.has("forgotten");
    return super.keeps(assumption);
  }

  /** Remembers something that later checks depend on. */
  note(fact: string): void {
    this.facts = intern(`${this.facts} ${fact}`);
  }

  /** An invariant does not hold, whatever has happened before. */
  report(invariant: Invariant, detail: string): void {
    this.violate(invariant, detail, []);
  }

  /** A client sends a request. */
  send(client: Client, server: Endpoint, request: Request): void {
    client.sent += 1;
    this.messages.push({
      id: `${client.name}.${client.sent}`,
      order: client.sent,
      client,
      server,
      request,
      isCopy: false,
      isLate: false,
      isOpen: request.isOpen,
      answer: undefined,
      answerId: 0,
      deliver: request.answer,
    });
    this.watcher?.sent(client, request);
  }

  /** A client sends a text to another one. */
  post(from: Client, to: Client, text: string, deliver: () => void): void {
    from.sent += 1;
    this.messages.push({
      id: `${from.name}.${from.sent}`,
      order: -from.sent,
      client: to,
      server: undefined,
      request: undefined,
      isCopy: false,
      isLate: false,
      isOpen: () => true,
      answer: { reply: text },
      answerId: intern(text),
      deliver,
    });
  }

  /** An endpoint executes a message. */
  execute(message: Message): void {
    const { server, request, isCopy } = message;
    if (!server || !request) return;
    this.effect = { server, message };
    const before = server.contents;
    if (server.awayUntil > this.now) {
      message.answer = failure(server, "network", "connection refused");
      message.answerId = 0;
    } else {
      message.answer = request.execute(isCopy ? 1 : 0);
      message.answerId = intern(textOf(message.answer));
      server.remember(message, this.now);
      this.watcher?.executed(message, before, server.contents);
    }
    // Nobody would hear its answer.
    if (!message.isOpen()) this.lose(message);
  }

  /** A client gets the answer to its message. */
  deliver(message: Message, flaw?: Flaw): void {
    const { client, id, answer, answerId } = message;
    this.lose(message);
    this.effect = { client };
    if (!message.isOpen() || !answer) return;
    this.trace(() => `${client.name} gets ${id}: ${textOf(answer)}`);
    client.receive(`${id} ${answerId} ${flaw}`);
    this.network = flaw ? garbling : goodNetwork;
    if (flaw) this.#choice.wanted = drawn[flaw];
    message.deliver(answer);
  }

  /** A message never arrives. */
  lose(message: Message): void {
    this.messages = this.messages.filter((other) => other !== message);
  }

  /** Puts a second copy of a request aside. */
  repeat(message: Message): void {
    this.messages.push({
      ...message,
      id: `${message.id}+`,
      isCopy: true,
      isLate: true,
      isOpen: () => false,
    });
  }

  /** Fires a timer; time passes until then. */
  fire(client: Client, timer: Timer): void {
    this.effect = { everything: true };
    this.leader = 0;
    this.scheduler.pass(Math.max(this.now, timer.due + client.pausedFor));
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
    const servers = this.servers.map(
      ({ contents, executed, awayUntil }) =>
        `${contents.id} ${executed} ${Math.max(0, awayUntil - this.now)}`,
    );
    const clients = this.processes.map(({ history, frozen }) => `${history}${frozen ? "f" : ""}`);
    const messages = this.messages
      .map(({ id, client, isLate, answer, answerId }) =>
        [client.index, id, isLate ? "l" : "", answer ? answerId : ""].join(" "),
      )
      .sort();
    return [
      this.now,
      this.leader,
      this.facts,
      ...this.events,
      ...clients,
      ...servers,
      intern(messages.join()),
    ].join("|");
  }
}

function isUnheard({ answer, isOpen }: Message): boolean {
  return answer !== undefined && !isOpen();
}

function textOf(answer: Answer): string {
  return "reply" in answer ? JSON.stringify(answer.reply) : answer.error.message;
}
