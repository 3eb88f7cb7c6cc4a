import { type Reply, ReplyError } from "../../../local/src/memory/index.ts";
import { type Command, type Endpoint, EndpointError, type EndpointErrorKind } from "../../../src/index.ts";
import { readCommand } from "../wire/cell-requests.ts";
import { type Contents, checkCell, contentsOf } from "../wire/cells.ts";
import { nonceOf, type Request } from "../wire/request.ts";
import { snapshotFor, standsFor } from "../wire/standing.ts";
import type { WakeUps } from "../wire/wake-ups.ts";
import type { Wire } from "../wire/wire.ts";
import type { Process } from "../world/process.ts";
import type { Server } from "../world/server.ts";
import type { World } from "../world/world.ts";
import { Subscription } from "./subscription.ts";

/** What a client gets back. */
export type Answer =
  | {
      readonly reply: Reply;
      /** A lock refuses a run, and not the record of another run. */
      readonly byLock?: boolean;
    }
  | { readonly error: EndpointError };

/** The longest word of a command that servers accept: longer than every script, shorter than some runs' results. */
const longestWord = 20_000;

const tooLarge = "HTTP 400, ERR max request size exceeded";

/** Who decides what becomes of messages: whether and when each is executed and answered. */
export interface Carrier {
  carry(message: Message): void;
}

/** Between which process and which server a link is. */
export interface LinkOptions {
  readonly world: World;
  readonly wire: Wire;
  readonly process: Process;
  readonly server: Server;
  /** false: through a client in between that repeats failed requests, as the Upstash SDK does. */
  readonly exactReplies: boolean;
  readonly carrier: Carrier;
  /** Called with what notes an answer, once the link has it. Default: it is noted at once. */
  readonly whenRead?: (note: () => void) => void;
  /**
   * Whether clients have few requests open at once, so that commands wait for each other, which takes a part of their
   * timeout. Default false.
   */
  readonly batches?: boolean | undefined;
  /** Set where the process wakes up by streams. Default: the endpoint has none. */
  readonly wakeUps?: WakeUps | undefined;
}

/** The endpoint through which a process reaches a server. The carrier takes each message. */
export function createLink(options: LinkOptions): Endpoint {
  const { name, dialect } = options.server;
  const { wakeUps } = options;
  const link = new Link(options);
  const send = (command: Command, signal: AbortSignal) => link.send(command, signal);
  // `exactReplies` is absent, not false: that is how an endpoint of unknown nature looks.
  const plain: Endpoint = options.exactReplies
    ? { name, dialect, exactReplies: true, send }
    : { name, dialect, send };
  if (!wakeUps) return plain;
  const way = { ...options, wakeUps };
  return { ...plain, subscribe: (channel, signal) => new Subscription(way, channel).open(signal) };
}

/** One message on its way. */
export interface Message {
  readonly command: Command;
  /** The same, parsed. */
  readonly request: Request;
  /** How many commands it stands for. Default 1. */
  readonly commands?: number;
  /** Whether the client still waits for the answer. */
  readonly isOpen: () => boolean;
  /** The server executes it, for the first time (`copy` 0) or again. */
  readonly execute: (copy: number) => Answer;
  /** May never be called, or when the client no longer waits. */
  readonly answer: (answer: Answer) => void;
}

/** The operations on what stands for a time. */
const timed: readonly Request["operation"][] = ["claim", "restore", "keep", "end"];

/** `acquire redlock:lock:{a} t0621c87 by EVALSHA, executed again`: for the trace. */
function describe({ operation, raises, keys, value }: Request, command: Command, copy: number): string {
  const again = copy > 0 ? ", executed again" : "";
  const what = [raises ? "raise fence" : operation, keys, ...(value ? [value.slice(0, 8)] : [])].join(" ");
  return `${what} by ${String(command[0])}${again}`;
}

/** Whether only locks are in the way of a run, and not the record of another one. */
function isLocked({ own, value }: Request, before: Contents | undefined): boolean {
  const [record, ...locks] = before?.values ?? [];
  const isRunWithLocks = own[0] !== value;
  return isRunWithLocks && (record === null || record === own[0]) && locks.some((lock) => lock !== null);
}

/** An answer that is an error. */
export function failure({ name }: Server, kind: EndpointErrorKind, message: string): Answer {
  return { error: new EndpointError(name, kind, message) };
}

class Link {
  readonly #options: LinkOptions;
  readonly #world: World;
  readonly #wire: Wire;
  /** Notes an answer, once the link has it. */
  readonly #whenRead: (note: () => void) => void;

  constructor(options: LinkOptions) {
    const { world, wire, whenRead = (note) => note() } = options;
    this.#options = options;
    this.#world = world;
    this.#wire = wire;
    this.#whenRead = whenRead;
  }

  /** @throws EndpointError as every endpoint does; `timeout` as soon as `signal` aborts */
  send(command: Command, signal: AbortSignal): Promise<unknown> {
    const { process, server, carrier, exactReplies, batches } = this.#options;
    const wire = this.#wire;
    const request = wire.sent(process, server, readCommand(command), command);
    this.#world.count("requests");
    return new Promise((resolve, reject) => {
      let open = true;
      const settle = (result: () => void) => {
        if (!open) return;
        open = false;
        signal.removeEventListener("abort", abandon);
        result();
      };
      const fail = (error: EndpointError) => {
        wire.failed(process, request);
        settle(() => reject(error));
      };
      const abandon = () => {
        // Elsewhere the whole timeout was left when it was sent, and nothing else ends the wait.
        if (batches) wire.givenUp(process, server, request);
        if (open) fail(new EndpointError(server.name, "timeout", "no answer in time"));
      };
      if (signal.aborted) return abandon();
      signal.addEventListener("abort", abandon);
      let retries = exactReplies ? 0 : 2;
      const receive = (answer: Answer) => {
        if (!open) return;
        if ("reply" in answer) {
          this.#answered(request, command, answer);
          settle(() => resolve(answer.reply));
        } else if (answer.error.kind === "network" && retries > 0) {
          retries -= 1;
          this.#world.count("request sent again by the client in between");
          process.timer(20, () => open && carrier.carry(message));
        } else {
          const { message: text } = answer.error;
          if (text.includes(tooLarge)) this.#whenRead(() => wire.refusedForSize(process, server, command));
          if (text.includes("NOSCRIPT")) this.#whenRead(() => wire.scriptUnknown(process, server, request));
          fail(answer.error);
        }
      };
      const message: Message = {
        command,
        request,
        isOpen: () => open,
        execute: (copy) => this.#execute(message, copy),
        answer: receive,
      };
      carrier.carry(message);
    });
  }

  #answered(
    request: Request,
    command: Command,
    { reply, byLock = false }: Extract<Answer, { reply: Reply }>,
  ): void {
    const { process, server } = this.#options;
    // Only a plain command has null for an answer: whatever else gets it knows no more than before.
    const isPlain = command[0] === "SET" && !command.includes("GET");
    if (server.answersNull && !isPlain) {
      this.#wire.failed(process, request);
      return;
    }
    const granted = request.isDone(reply);
    this.#whenRead(() => this.#wire.answered(process, server, request, { granted, byLock }));
    const { operation, value } = request;
    const what = () => `${operation} ${value.slice(0, 8)} ${JSON.stringify(reply)}`;
    this.#world.trace(() => `${process.name}<${server.name} ${what()}`);
  }

  #execute(message: Message, copy: number): Answer {
    const { process, server } = this.#options;
    const { command, request } = message;
    const executed = this.#executeOn(server, message, copy);
    const what = () => `${describe(request, command, copy)} = ${JSON.stringify(executed)}`;
    this.#world.trace(() => `${process.name}>${server.name} ${what()}`);
    return executed;
  }

  #executeOn(server: Server, { command, request }: Message, copy: number): Answer {
    const world = this.#world;
    if (server.answersNull) {
      world.count("null without an execution");
      return { reply: null };
    }
    world.count("executions");
    if (command.some((word) => typeof word === "string" && word.length > longestWord)) {
      world.count("request too large");
      return failure(server, "redis", `${tooLarge}. Limit: ${longestWord} bytes`);
    }
    const found = snapshotFor(server, request);
    const contents = () => contentsOf(request, (key) => server.execute(["GET", key]) as string | null);
    const contentsBefore = contents();
    const stood = timed.includes(request.operation) ? standsFor(server, request) : 0;
    try {
      const reply = server.execute(command);
      const granted = request.isDone(reply);
      const stands = stood > 0 ? standsFor(server, request) : 0;
      this.#checkKeeps(request, stood, stands);
      const execution = { granted, reply, copy, found, stood: stood > 0, stands: stands > 0 };
      this.#wire.executed(this.#options.process, server, request, execution);
      checkCell(world, request, { where: server.name, granted, before: contentsBefore, after: contents() });
      if (request.operation === "claim" && !granted) this.#checkRefusal(request, command);
      return !granted && isLocked(request, contentsBefore) ? { reply, byLock: true } : { reply };
    } catch (error) {
      if (!(error instanceof ReplyError)) throw error;
      if (/no number|not an integer/.test(error.message))
        world.violate("calls end", `${server.name} cannot read a number of ${command.slice(2)}`);
      return failure(server, "redis", `Redis refused: ${error.message}`);
    }
  }

  /** A claim that is executed again cuts nothing. `stood` and `stands`: for how many ms what it claims stood before, and stands now. */
  #checkKeeps({ operation, keys }: Request, stood: number, stands: number): void {
    if (stood === 0 || (operation !== "claim" && operation !== "restore")) return;
    const { process, server } = this.#options;
    const what = () => `${server.name} shortened ${keys} for an acquire of ${process.name}`;
    this.#world.check("validity is honest", stands >= stood, what);
  }

  /** A repeated request must not be refused because of its first execution: then nobody would roll that back. */
  #checkRefusal(request: Request, command: Command): void {
    const { keys, value, tombstone } = request;
    const { process, server, exactReplies } = this.#options;
    // Its undo refuses it. Of a resume, the undo deletes the claim in a second request, which may be lost.
    if (tombstone !== undefined && server.execute(["GET", tombstone]) !== null) return;
    const stands = standsFor(server, request) > 0;
    // A value that was put back is a held lock: its release frees it everywhere, whatever the late acquire gets back.
    if (this.#wire.isRestored(nonceOf(value), server)) return;
    // A plain command cannot recognise its own value. It is sent only where nobody repeats requests.
    const needs = command[0] === "SET" && exactReplies ? (["single execution"] as const) : [];
    const what = () => `${server.name} refused ${keys} to ${process.name} because of itself`;
    this.#world.check("refusals are true", !stands, what, needs);
  }
}
