import { stopwatch } from "../../../src/runtime.ts";
import type { Draw } from "./draw.ts";
import type { Process } from "./process.ts";
import type { FaultKind, Scenario } from "./scenario.ts";
import type { Server } from "./server.ts";
import { goodNetwork, goodStreams, type World } from "./world.ts";

/**
 * Injects the scenario's faults, at random intervals, each for a while.
 *
 * @param clockSet called whenever the clock of a process was set, or stood still
 * @returns ends the faults, and repairs everything except crashed endpoints, which restart when they are due
 */
export function startNemesis(
  world: World,
  scenario: Scenario,
  clockSet: (process: Process) => void,
): () => void {
  const nemesis = new Nemesis(world, scenario, clockSet);
  nemesis.start();
  return () => nemesis.stop();
}

class Nemesis {
  readonly #world: World;
  readonly #draw: Draw;
  readonly #scenario: Scenario;
  readonly #clockSet: (process: Process) => void;
  #over = false;

  readonly #inject: Readonly<Record<FaultKind, () => void>> = {
    "link cut": () => this.#cut(this.#anyProcess(), this.#anyServer()),
    "endpoint cut off": () => this.#cutOff(this.#anyServer()),
    "endpoint slow": () => this.#slowDown(this.#anyServer()),
    "endpoint silent": () => this.#silence(this.#anyServer()),
    "endpoint crash": () => this.#crash(this.#anyServer()),
    "clock set": () => this.#setClock(),
    "client paused": () => this.#pause(this.#anyProcess()),
    "client frozen": () => this.#freeze(this.#anyProcess()),
    "client killed": () => this.#kill(),
  };

  constructor(world: World, scenario: Scenario, clockSet: (process: Process) => void) {
    this.#world = world;
    this.#draw = world.draw;
    this.#scenario = scenario;
    this.#clockSet = clockSet;
  }

  start(): void {
    this.#world.network = this.#scenario.badNetwork;
    this.#world.streams = this.#scenario.wakeUps?.streams ?? goodStreams;
    if (this.#scenario.faults.length > 0) this.#schedule(this.#untilNext());
  }

  stop(): void {
    const { servers, processes } = this.#world;
    this.#over = true;
    this.#world.trace(() => "faults end");
    this.#world.network = goodNetwork;
    if (!this.#scenario.wakeUps?.isLasting) this.#world.streams = goodStreams;
    this.#world.cuts.clear();
    for (const server of servers) {
      server.slowness = 0;
      server.silent = false;
    }
    for (const process of processes) process.resume();
  }

  #schedule(time: number): void {
    this.#world.scheduler.at(time, () => {
      if (this.#over) return;
      const kind = this.#draw.pick(this.#scenario.faults);
      this.#world.count(kind);
      this.#world.trace(() => `fault: ${kind}`);
      this.#inject[kind]();
      this.#schedule(this.#world.now + this.#untilNext());
    });
  }

  #untilNext(): number {
    return this.#draw.between(0, 2 * this.#scenario.faultInterval);
  }

  /** Calls `undo` after a while. */
  #undoLater(undo: () => void): void {
    const { ttl } = this.#scenario;
    this.#world.scheduler.at(
      this.#world.now + this.#draw.between(0, this.#draw.pick([0.5, 1, 3]) * ttl),
      undo,
    );
  }

  #anyProcess(): Process {
    return this.#draw.pick(this.#world.processes);
  }

  #anyServer(): Server {
    return this.#draw.pick(this.#world.servers);
  }

  #cut(process: Process, server: Server): void {
    const { cuts } = this.#world;
    const way = `${process.name}>${server.name}`;
    cuts.set(way, this.#draw.pick(["silent", "refused"]));
    this.#undoLater(() => cuts.delete(way));
  }

  #cutOff(server: Server): void {
    for (const process of this.#world.processes) this.#cut(process, server);
  }

  #slowDown(server: Server): void {
    server.slowness = this.#draw.between(0, this.#scenario.ttl);
    this.#undoLater(() => {
      server.slowness = 0;
    });
  }

  #silence(server: Server): void {
    server.silent = true;
    this.#undoLater(() => {
      server.silent = false;
    });
  }

  #crash(server: Server): void {
    if (!server.up) return;
    server.crash();
    const forgets = !this.#world.keeps("kept memory") && this.#draw.chance(0.7);
    this.#world.count(forgets ? "restart without memory" : "restart with memory");
    const start = () => {
      if (forgets) server.forget();
      server.up = true;
    };
    if (!forgets) this.#undoLater(start);
    else this.#world.scheduler.at(this.#world.now + this.#absence(), start);
  }

  /** For how many ms an endpoint stays away that has lost its memory. An early return breaks mutual exclusion. */
  #absence(): number {
    const { ttl } = this.#scenario;
    if (!this.#world.keeps("absence after memory loss")) return this.#draw.between(0, 20);
    // The longest that anything granted may stand, by the slowest clock.
    const longest = 2 * ttl * 1.1 + 100;
    return longest + this.#draw.between(0, ttl);
  }

  #setClock(): void {
    const { ttl } = this.#scenario;
    if (!this.#world.keeps("bounded drift") && this.#draw.chance(0.5)) {
      this.#anyServer().offset += this.#draw.between(-ttl, 2 * ttl);
      this.#world.count("endpoint's clock set");
      return;
    }
    if (!this.#world.keeps("kept memory") && this.#world.keeps("agreeing clocks")) return;
    const process = this.#anyProcess();
    if (process.frozen && this.#world.keeps("a clock that goes on")) return;
    const step = this.#draw.pick([
      this.#draw.between(-2 * ttl, 2 * ttl),
      this.#draw.between(-3_600_000, 3_600_000),
    ]);
    this.#world.trace(() => `${process.name}'s clock is set by ${Math.floor(step)} ms`);
    process.setClock(step);
    this.#clockChanged(process);
  }

  #pause(process: Process): void {
    process.pause(false);
    this.#undoLater(() => process.resume());
  }

  #freeze(process: Process): void {
    if (!process.running) return;
    this.#clockChanged(process);
    process.pause(true);
    const since = this.#world.now;
    this.#undoLater(() => {
      this.#world.trace(() => `${process.name} goes on after ${(this.#world.now - since).toFixed(3)} ms`);
      if (!this.#world.keeps("a clock that goes on")) process.setClock(since - this.#world.now);
      process.resume();
      this.#clockChanged(process);
    });
  }

  #kill(): void {
    if (this.#world.processes.filter(({ alive }) => alive).length > 2) this.#anyProcess().kill();
  }

  /** One clock may be set, and then the other one stand still, as long as the library reads both in between. */
  #clockChanged(process: Process): void {
    if (this.#world.keeps("a clock that goes on")) stopwatch(process);
    this.#clockSet(process);
  }
}
