import { toBytes } from "../../local/src/engine/commands/bytes.ts";
import { Engine, type Push, type Reply } from "../../local/src/memory/index.ts";
import type { Command, Dialect } from "../../src/endpoints/endpoint.ts";
import { TwinEngine } from "../twins/twin-engine.ts";
import { epoch } from "./process.ts";
import type { Scheduler } from "./scheduler.ts";

interface ServerOptions extends Pick<Server, "name" | "dialect" | "rate" | "offset"> {
  readonly scheduler: Scheduler;
  /** Whether scripts that have a twin in TypeScript are run by it. Default false: all scripts run as Lua. */
  readonly twins?: boolean;
  /** What executes its commands. Default: an engine of its own. */
  readonly engine?: Pick<Engine, "execute" | "flush" | "subscribe">;
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
  readonly #engine: NonNullable<ServerOptions["engine"]>;
  /** Engines of its own go back to the pool. */
  readonly #borrowed: Engine | undefined;
  readonly #twins: TwinEngine | undefined;
  /** Each ends a subscription. */
  readonly #subscriptions = new Map<Subscriber, () => void>();
  #scripts = 0;

  constructor({ name, dialect, scheduler, rate, offset, twins = false, engine }: ServerOptions) {
    this.name = name;
    this.dialect = dialect;
    this.rate = rate;
    this.offset = offset;
    this.#scheduler = scheduler;
    this.#borrowed = engine ? undefined : borrowEngine(dialect, () => this.time());
    this.#engine = engine ?? this.#borrowed!;
    this.#twins = twins && this.#borrowed ? new TwinEngine(this.#borrowed) : undefined;
  }

  /** How many scripts were run so far, by their twins or as Lua. Refused ones do not count. */
  get scripts(): { readonly twin: number; readonly lua: number } {
    const twin = this.#twins?.runs ?? 0;
    return { twin, lua: this.#scripts - twin };
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
    const reply = (this.#twins ?? this.#engine).execute(command);
    if (command[0] === "EVALSHA" || command[0] === "EVAL") this.#scripts += 1;
    return reply;
  }

  /** Subscribes to a channel. The returned function ends it; it must not be called while a command is executed. */
  subscribe(channel: string, subscriber: Subscriber): () => void {
    const unsubscribe = this.#engine.subscribe("channels", [toBytes(channel)], subscriber.push);
    const end = () => {
      this.#subscriptions.delete(subscriber);
      unsubscribe();
    };
    this.#subscriptions.set(subscriber, end);
    return end;
  }

  /** The channels that somebody listens to. */
  channels(): string[] {
    return this.execute(["PUBSUB", "CHANNELS"]) as string[];
  }

  /** Crashes: all connections end. */
  crash(): void {
    this.up = false;
    for (const [{ lost }, end] of [...this.#subscriptions]) {
      end();
      lost();
    }
  }

  /** Forgets its scripts, as another server does that takes its place. */
  forgetScripts(): void {
    this.#twins?.forgetScripts();
    this.#engine.execute(["SCRIPT", "FLUSH"]);
  }

  /** Loses its memory. */
  forget(): void {
    (this.#twins ?? this.#engine).flush();
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

  /** Returns the engine to the pool. The server must not be used any more. */
  close(): void {
    for (const end of [...this.#subscriptions.values()]) end();
    if (this.#borrowed) returnEngine(this.dialect, this.#borrowed);
  }
}

// Creating a Lua machine takes longer than many a simulation runs, so emptied engines are used again.
const idle: Record<Dialect, { engine: Engine; clock: { now: () => number } }[]> = {
  redis: [],
  "redis-8.4": [],
  upstash: [],
};
const lent = new Map<Engine, { now: () => number }>();

function borrowEngine(dialect: Dialect, now: () => number): Engine {
  const used = idle[dialect].pop();
  const clock = used?.clock ?? { now };
  clock.now = now;
  const engine = used?.engine ?? new Engine({ dialect, now: () => clock.now() });
  lent.set(engine, clock);
  return engine;
}

function returnEngine(dialect: Dialect, engine: Engine): void {
  engine.flush();
  idle[dialect].push({ engine, clock: lent.get(engine)! });
  lent.delete(engine);
}
