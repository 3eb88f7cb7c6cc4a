import type { Command, Dialect } from "../../../src/endpoints/endpoint.ts";
import { Engine, type Reply } from "../../../src/testing/index.ts";
import { epoch } from "./process.ts";
import type { Scheduler } from "./scheduler.ts";

/** One Redis: the embedded engine, with a clock of its own. */
export class Server {
  readonly name: string;
  readonly dialect: Dialect;
  /** How fast its clock runs; 1 is right. */
  readonly rate: number;
  /** ms that its clock is off. */
  offset: number;
  up = true;
  /** While it is up: takes requests and never answers, as a stopped process does. */
  silent = false;
  /** ms that every message from and to it takes longer. */
  slowness = 0;
  readonly #scheduler: Scheduler;
  readonly #engine: Engine;

  constructor(name: string, dialect: Dialect, scheduler: Scheduler, rate: number, offset: number) {
    this.name = name;
    this.dialect = dialect;
    this.rate = rate;
    this.offset = offset;
    this.#scheduler = scheduler;
    this.#engine = borrow(dialect, () => this.time());
  }

  /** What its clock says, in ms since 1970. */
  time(): number {
    return epoch + this.offset + this.#scheduler.now * this.rate;
  }

  /** @throws ReplyError when Redis would answer with an error */
  execute(command: Command): Reply {
    return this.#engine.execute(command);
  }

  forget(): void {
    this.#engine.flush();
  }

  /** Keys that would stand for ever. */
  eternalKeys(): string[] {
    const keys = this.#engine.execute(["KEYS", "*"]) as string[];
    return keys.filter((key) => this.#engine.execute(["PTTL", key]) === -1);
  }

  /** ms until the last of the keys that match is gone. */
  longestTtl(pattern: string): number {
    const keys = this.#engine.execute(["KEYS", pattern]) as string[];
    return Math.max(0, ...keys.map((key) => Number(this.#engine.execute(["PTTL", key]))));
  }

  /** Gives the engine back; the server must not be used any more. */
  close(): void {
    giveBack(this.dialect, this.#engine);
  }
}

// A Lua machine takes longer to make than many a simulation takes to run, so engines are used again, emptied.
const idle: Record<Dialect, { engine: Engine; clock: { now: () => number } }[]> = { redis: [], upstash: [] };
const lent = new Map<Engine, { now: () => number }>();

function borrow(dialect: Dialect, now: () => number): Engine {
  const used = idle[dialect].pop();
  const clock = used?.clock ?? { now };
  clock.now = now;
  const engine = used?.engine ?? new Engine({ dialect, now: () => clock.now() });
  lent.set(engine, clock);
  return engine;
}

function giveBack(dialect: Dialect, engine: Engine): void {
  engine.flush();
  idle[dialect].push({ engine, clock: lent.get(engine)! });
  lent.delete(engine);
}
