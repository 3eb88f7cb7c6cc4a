import type { Process } from "../world/process.ts";
import type { Server } from "../world/server.ts";
import type { NetworkConditions, World } from "../world/world.ts";
import { type Answer, type Carrier, failure, type Message } from "./link.ts";

/** A message, when it was sent. */
interface Sent extends Message {
  /** Its place in the order in which messages were sent. */
  readonly serial: number;
  /** The network as it was. */
  readonly network: NetworkConditions;
}

/** The network between a process and a server. The world's faults apply to each message. */
export class Network implements Carrier {
  readonly #world: World;
  readonly #process: Process;
  readonly #server: Server;
  readonly #way: string;
  #sent = 0;
  /** The latest message that has been executed. */
  #newest = 0;

  constructor(world: World, process: Process, server: Server) {
    this.#world = world;
    this.#process = process;
    this.#server = server;
    this.#way = `${process.name}>${server.name}`;
  }

  /** Sends one message. It may get lost, or fail before it reaches the server. */
  carry({ command, request, commands = 1, isOpen, execute, answer }: Message): void {
    const { network, draw } = this.#world;
    this.#sent += 1;
    // No spread: it alone took a fortieth of the time of a simulation.
    const serial = this.#sent;
    const message: Sent = { command, request, commands, isOpen, execute, answer, serial, network };
    if (this.#isCut()) {
      this.#world.count("request into a cut link");
      if (this.#world.cuts.get(this.#way) === "refused") this.#fail(message, "connection refused");
      return;
    }
    if (draw.chance(network.loseRequest)) {
      this.#world.count("request lost");
      return;
    }
    if (draw.chance(network.httpError)) {
      this.#world.count("http error");
      this.#reply(message, failure(this.#server, "http", "HTTP 503"));
      return;
    }
    if (draw.chance(network.reset / 2)) {
      this.#world.count("connection reset before execution");
      this.#fail(message, "connection reset");
      return;
    }
    this.#arriveAfter(this.#world.drawDelay(this.#server), message, 0);
  }

  /** A message reaches the server, for the first time (`copy` 0) or again. */
  #arrive(message: Sent, copy: number): void {
    const { network, isOpen } = message;
    const { draw } = this.#world;
    if (this.#isCut()) {
      return;
    }
    if (!this.#server.up) {
      this.#fail(message, "connection refused");
      return;
    }
    if (this.#server.silent) {
      this.#world.count("request to a silent endpoint");
      return;
    }
    if (message.serial < this.#newest) this.#world.count("request overtaken");
    this.#newest = Math.max(this.#newest, message.serial);
    if (copy > 0) this.#world.count("request executed again");
    if (!isOpen()) this.#world.count("request late");
    const executed = message.execute(copy);
    if (copy === 0 && draw.chance(network.duplicate)) {
      this.#arriveAfter(draw.between(0, draw.chance(0.5) ? 20 : 2_000), message, 1);
    }
    const { loseRepliesOf: only = message.request.keys[0] } = network;
    if (draw.chance(network.loseReply) && message.request.keys[0] === only) {
      this.#world.count("reply lost");
      return;
    }
    if (draw.chance(network.reset)) {
      this.#world.count("connection reset after execution");
      this.#fail(message, "connection reset");
      return;
    }
    this.#reply(message, executed);
  }

  #fail(message: Sent, reason: string): void {
    this.#reply(message, failure(this.#server, "network", reason));
  }

  /** Sends an answer back to the process. */
  #reply(message: Sent, what: Answer): void {
    const { isOpen, answer } = message;
    const { scheduler } = this.#world;
    scheduler.at(scheduler.now + this.#world.drawDelay(this.#server), () => {
      if (!this.#process.alive) {
        return;
      }
      if (!isOpen()) this.#world.count("reply late");
      this.#process.deliver(() => answer(what));
    });
  }

  #isCut(): boolean {
    return this.#world.cuts.has(this.#way);
  }

  /** What a server does is seen by clients only when its answer arrives. */
  #arriveAfter(ms: number, message: Sent, copy: number): void {
    const { scheduler } = this.#world;
    const { pace } = this.#server;
    scheduler.quietlyAt(scheduler.now + ms, () => {
      if (pace === 0) return this.#arrive(message, copy);
      const wait = this.#server.workOff(message.commands ?? 1);
      scheduler.quietlyAt(scheduler.now + wait, () => this.#arrive(message, copy));
    });
  }
}
