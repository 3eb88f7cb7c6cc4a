import { eventOf } from "../../../local/src/event-stream.ts";
import type { Push } from "../../../local/src/memory/index.ts";
import { EndpointError, type EndpointErrorKind } from "../../../src/index.ts";
import type { StreamRecord, WakeUps } from "../wire/wake-ups.ts";
import type { Process } from "../world/process.ts";
import type { Server } from "../world/server.ts";
import type { StreamConditions, World } from "../world/world.ts";

// The streams of messages by which endpoints wake up waiters. Each event has the faults of the network, and those of
// streams: it may be lost, doubled or late, and the stream may be cut, stay silent, or be confirmed before it stands.

/** Between whom a stream is, and who observes it. */
export interface StreamWay {
  readonly world: World;
  readonly wakeUps: WakeUps;
  readonly process: Process;
  readonly server: Server;
}

/** A part of an event. `note` is called when the client reads it. */
interface Piece {
  readonly value: Uint8Array;
  readonly note: (() => void) | undefined;
}

/** Settles the client's request, and later its reads. */
interface Settled<Value> {
  readonly resolve: (value: Value) => void;
  readonly reject: (error: Error) => void;
}

/** A client subscribes to a channel, as an endpoint's `subscribe` does. */
export class Subscription {
  readonly #way: StreamWay;
  readonly #channel: string;
  readonly #conditions: StreamConditions;
  readonly #isSilent: boolean;
  readonly #record: StreamRecord;
  /** What the client has not read yet, and what it waits for. */
  readonly #pieces: Piece[] = [];
  #read: Settled<{ readonly value?: Uint8Array }> | undefined;
  #request: Settled<ReadableStream<Uint8Array>> | undefined;
  /** How it has ended for the client, when it has. */
  #ended: { readonly error: EndpointError | undefined } | undefined;
  #isConfirmed = false;
  /** Ends it at the server. */
  #leave: (() => void) | undefined;

  constructor(way: StreamWay, channel: string) {
    const { draw, streams } = way.world;
    this.#way = way;
    this.#channel = channel;
    this.#conditions = streams;
    this.#isSilent = draw.chance(streams.silent);
    this.#record = way.wakeUps.opened(way.process, channel);
  }

  open(signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return new Promise((resolve, reject) => {
      this.#request = { resolve, reject };
      const abandon = () => this.#close(this.#error("timeout", "no answer in time"));
      if (signal.aborted) return abandon();
      signal.addEventListener("abort", abandon, { once: true });
      this.#send();
    });
  }

  /** The request. It may get lost, or be refused before it reaches the server. */
  #send(): void {
    const { world, process, server } = this.#way;
    const { draw, network } = world;
    world.count("stream opened");
    world.trace(() => `${process.name}>${server.name} subscribe ${this.#channel}`);
    const cut = this.#cut();
    if (cut === "refused") {
      this.#refuse("network", "connection refused");
      return;
    }
    if (cut || draw.chance(network.loseRequest)) {
      this.#way.world.count("subscription lost");
      return;
    }
    if (draw.chance(network.httpError)) {
      this.#refuse("http", "HTTP 503");
      return;
    }
    this.#later(this.#delay(), () => this.#arrive());
  }

  #arrive(): void {
    const { world, server } = this.#way;
    const { draw, network } = world;
    const { early, cut } = this.#conditions;
    if (this.#cut() || this.#ended) return;
    if (!server.up) {
      this.#refuse("network", "connection refused");
      return;
    }
    if (server.silent) {
      this.#way.world.count("subscription to a silent endpoint");
      return;
    }
    if (draw.chance(early)) {
      this.#way.world.count("stream confirmed early");
      this.#push(["subscribe", this.#channel, 1]);
      this.#later(draw.between(0, 2_000), () => this.#stand());
    } else this.#stand();
    if (draw.chance(cut)) this.#later(draw.between(0, draw.pick([500, 5_000])), () => this.#break("cut"));
    if (draw.chance(network.loseReply)) {
      this.#way.world.count("subscription never answered");
      return;
    }
    this.#deliver(this.#delay(), () => this.#request?.resolve(this.#body()));
  }

  /** From now on the server sends it what is published. */
  #stand(): void {
    const { server } = this.#way;
    if (this.#ended || !server.up) return;
    this.#leave = server.subscribe(this.#channel, {
      push: (push) => this.#push(push),
      lost: () => this.#break("lost with its endpoint"),
    });
  }

  /** The server sends an event. */
  #push(push: Push): void {
    const { world, process } = this.#way;
    const { draw } = world;
    const { lose, double, late } = this.#conditions;
    const isMessage = push[0] === "message";
    if (!process.alive || this.#ended) {
      this.#leaveSoon();
      return;
    }
    if (!isMessage && this.#isConfirmed) return;
    this.#isConfirmed = true;
    if (this.#cut()) {
      this.#way.world.count("message into a cut link");
      this.#break("lost with its link");
      return;
    }
    if (isMessage && this.#isSilent) {
      this.#way.world.count("message on a silent stream");
      return;
    }
    if (isMessage && draw.chance(lose)) {
      this.#way.world.count("message lost");
      return;
    }
    const times = isMessage && draw.chance(double) ? 2 : 1;
    const isLate = isMessage && draw.chance(late);
    if (times > 1) world.count("message doubled");
    if (isLate) this.#way.world.count("message late");
    for (let time = 0; time < times; time += 1) {
      this.#deliver(this.#delay() + (isLate ? draw.between(0, 5_000) : 0), () => this.#receive(push));
    }
  }

  /** An event reaches the client, in one piece or two. */
  #receive(push: Push): void {
    const { world, wakeUps, process, server } = this.#way;
    const { draw } = world;
    const event = eventOf(push);
    const note = () => {
      world.trace(() => `${process.name}<${server.name} ${push.join(" ").slice(0, 80)}`);
      if (push[0] === "message") wakeUps.told(process, String(push[2]));
      else wakeUps.stood(this.#record);
    };
    const at = draw.chance(0.2) ? draw.integer(1, event.length - 1) : 0;
    if (at > 0) this.#pieces.push({ value: event.slice(0, at), note: undefined });
    this.#pieces.push({ value: event.slice(at), note });
    this.#flush();
  }

  /** Not a real stream: reading it would take turns of the event loop, in real time. */
  #body(): ReadableStream<Uint8Array> {
    const read = () =>
      new Promise<{ readonly value?: Uint8Array }>((resolve, reject) => {
        this.#read = { resolve, reject };
        this.#flush();
      });
    const cancel = async () => this.#close(undefined);
    return { getReader: () => ({ read, cancel }), cancel } as unknown as ReadableStream<Uint8Array>;
  }

  /** Settles the client's read, if there is something to read. */
  #flush(): void {
    const read = this.#read;
    if (!read || (this.#pieces.length === 0 && !this.#ended)) return;
    this.#read = undefined;
    const piece = this.#ended?.error ? undefined : this.#pieces.shift();
    if (piece) {
      piece.note?.();
      read.resolve({ value: piece.value });
    } else if (this.#ended?.error) read.reject(this.#ended.error);
    else read.resolve({});
  }

  /** It ends at the server. The client may learn of it, in order or by an error, or never. */
  #break(why: string): void {
    const { world } = this.#way;
    if (this.#ended) return;
    this.#way.world.count(`stream ${why}`);
    this.#leaveSoon();
    const fate = world.draw.fraction();
    if (fate < 0.3) {
      world.count("stream dead without a sign");
      return;
    }
    const error = fate < 0.6 ? this.#error("network", "connection reset") : undefined;
    this.#deliver(this.#delay(), () => this.#close(error ?? this.#error("network", "no stream"), !error));
  }

  /** It ends for the client. `inOrder`: after what was sent. */
  #close(error: EndpointError | undefined, inOrder = false): void {
    if (this.#ended) return;
    this.#ended = { error: inOrder ? undefined : error };
    const { world, process, server } = this.#way;
    world.trace(
      () => `${process.name}|${server.name} stream of ${this.#channel} ends: ${error?.message ?? ""}`,
    );
    this.#way.wakeUps.closed(this.#record);
    if (error) this.#request?.reject(error);
    this.#flush();
    // The server learns of it by the connection, unless that is cut: then with its next message.
    if (!this.#cut()) this.#later(this.#delay(), () => this.#leaveSoon());
  }

  #refuse(kind: EndpointErrorKind, why: string): void {
    this.#way.world.count("subscription refused");
    this.#deliver(this.#delay(), () => this.#close(this.#error(kind, why)));
  }

  /** Not at once: this may be called while the server publishes. */
  #leaveSoon(): void {
    this.#later(0, () => {
      this.#leave?.();
      this.#leave = undefined;
    });
  }

  #cut(): "silent" | "refused" | undefined {
    const { world, process, server } = this.#way;
    return world.cuts.get(`${process.name}>${server.name}`);
  }

  #delay(): number {
    const { world, server } = this.#way;
    return world.drawDelay(server);
  }

  /** At the server: nothing that the client could see at once. */
  #later(ms: number, what: () => void): void {
    const { scheduler } = this.#way.world;
    scheduler.quietlyAt(scheduler.now + ms, what);
  }

  /** At the client, as soon as it runs. */
  #deliver(ms: number, what: () => void): void {
    const { world, process } = this.#way;
    world.scheduler.at(world.now + ms, () => process.deliver(what));
  }

  #error(kind: EndpointErrorKind, why: string): EndpointError {
    return new EndpointError(this.#way.server.name, kind, why);
  }
}
