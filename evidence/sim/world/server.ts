import { Engine, type Push, type Reply } from "../../../local/src/memory/index.ts";
import type { Command, Dialect } from "../../../src/index.ts";
import { epoch } from "./process.ts";
import type { Scheduler } from "./scheduler.ts";

interface ServerOptions extends Pick<Server, "name" | "dialect" | "rate" | "offset"> {
  readonly scheduler: Scheduler;
}

/** Who listens to a channel. */
interface Subscriber {
  readonly push: (push: Push) => void;
  /** The server has crashed. */
  readonly lost: () => void;
}

/** One Redis server: the embedded engine, with a clock of its own. */
export class Server {
  readonly name: string;
  readonly dialect: Dialect;
  /** How fast its clock runs; 1 is exact. */
  readonly rate: number;
  /** How far its clock is ahead, in ms. */
  offset: number;
  up = true;
  /** While it is up: accepts requests and never answers, as a stopped process does. */
  silent = false;
  /** It is behind a gateway that answers null to everything and passes nothing on. */
  answersNull = false;
  /** By how many ms every message from and to it is delayed. */
  slowness = 0;
  /** ms that each command takes, one after the other. */
  pace = 0;
  #freeAt = 0;
  readonly #scheduler: Scheduler;
  readonly #engine: Engine;
  /** Each with its channel, and what ends it. */
  readonly #subscriptions = new Map<Subscriber, { readonly channel: string; end(): void }>();

  constructor({ name, dialect, scheduler, rate, offset }: ServerOptions) {
    this.name = name;
    this.dialect = dialect;
    this.rate = rate;
    this.offset = offset;
    this.#scheduler = scheduler;
    this.#engine = new Engine({ dialect, now: () => this.time() });
  }

  /** ms until it will have executed so many commands more. */
  workOff(commands: number): number {
    const { now } = this.#scheduler;
    this.#freeAt = Math.max(now, this.#freeAt) + commands * this.pace;
    return this.#freeAt - now;
  }

  /** Its clock, in ms since 1970. */
  time(): number {
    return epoch + this.offset + this.#scheduler.now * this.rate;
  }

  /** @throws ReplyError when Redis would answer with an error */
  execute(command: Command): Reply {
    return this.#engine.execute(command);
  }

  /** Subscribes to a channel. The returned function ends it; it must not be called while a command is executed. */
  subscribe(channel: string, subscriber: Subscriber): () => void {
    const unsubscribe = this.#engine.subscribe([channel], subscriber.push);
    const end = () => {
      this.#subscriptions.delete(subscriber);
      unsubscribe();
    };
    this.#subscriptions.set(subscriber, { channel, end });
    return end;
  }

  /** The channels that somebody listens to. */
  channels(): string[] {
    return [...new Set([...this.#subscriptions.values()].map(({ channel }) => channel))];
  }

  /** Crashes: all connections end. */
  crash(): void {
    this.up = false;
    for (const [{ lost }, { end }] of [...this.#subscriptions]) {
      end();
      lost();
    }
  }

  /** Forgets its scripts, as another server does that takes its place. */
  forgetScripts(): void {
    this.#engine.execute(["SCRIPT", "FLUSH"]);
  }

  /** Loses its memory. */
  forget(): void {
    this.#engine.flush();
  }

  /** Keys that never expire. */
  keysWithoutTtl(): string[] {
    const keys = this.#engine.execute(["KEYS", "*"]) as string[];
    return keys.filter((key) => this.#engine.execute(["PTTL", key]) === -1);
  }

  /** ms until the last of the keys that match `pattern` expires; 0 when there is none. */
  longestTtl(pattern: string): number {
    const keys = this.#engine.execute(["KEYS", pattern]) as string[];
    return Math.max(0, ...keys.map((key) => Number(this.#engine.execute(["PTTL", key]))));
  }
}
