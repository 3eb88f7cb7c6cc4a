import type { Draw } from "../draw.ts";
import type { Process } from "./process.ts";
import type { FaultKind, Scenario } from "./scenario.ts";
import type { Server } from "./server.ts";
import { goodNetwork, goodStreams, type World } from "./world.ts";

/** Injects the scenario's faults, at random intervals, each for a while. */
export class Nemesis {
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
    "scripts forgotten": () => this.#forgetScripts(this.#anyServer()),
  };

  /** @param clockSet called whenever the clock of a process was set, or stood still */
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

  /** Repairs everything except crashed endpoints, which restart when they are due. */
  stop(): void {
    const { servers, processes } = this.#world;
    this.#over = true;
    this.#world.trace(() => "faults end");
    this.#world.network = goodNetwork;
    if (!this.#scenario.wakeUps?.isLasting) this.#world.streams = goodStreams;
    this.#world.cuts.clear();
    for (const server of servers) {
      server.slowness = 0;
      server.silent = this.#scenario.oddEndpoint === "silent" && server === servers.at(-1);
    }
    for (const process of processes) process.resume();
  }

  #schedule(time: number): void {
    this.#world.scheduler.at(time, () => {
      if (this.#over) return;
      const kind = this.#draw.pick(this.#scenario.faults);
      this.#world.count(kind);
      this.#inject[kind]();
      this.#schedule(this.#world.now + this.#untilNext());
    });
  }

  #untilNext(): number {
    return this.#draw.between(0, 2 * this.#scenario.faultInterval);
  }

  /** Calls `undo` after a while. @param fault its name and target; undefined: nothing has changed */
  #undoLater(fault: string | undefined, detail: string, undo: () => void): void {
    const { ttl } = this.#scenario;
    const until = this.#world.now + this.#draw.between(0, this.#draw.pick([0.5, 1, 3]) * ttl);
    this.#undoAt(until, fault, detail, undo);
  }

  #undoAt(until: number, fault: string | undefined, detail: string, undo: () => void): void {
    if (fault !== undefined) this.#note(`${fault} until ${until.toFixed(3)}: ${detail}`);
    this.#world.scheduler.at(until, undo);
  }

  #note(fault: string): void {
    this.#world.trace(() => `fault: ${fault}`);
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
    const how = this.#draw.pick(["silent", "refused"] as const);
    cuts.set(way, how);
    const detail = how === "silent" ? "messages get lost" : "connections are refused";
    this.#undoLater(`cut off ${way}`, detail, () => cuts.delete(way));
  }

  #cutOff(server: Server): void {
    for (const process of this.#world.processes) this.#cut(process, server);
  }

  #slowDown(server: Server): void {
    server.slowness = this.#draw.between(0, this.#scenario.ttl);
    const detail = `each message takes ${server.slowness.toFixed()} ms more`;
    this.#undoLater(`slow ${server.name}`, detail, () => {
      server.slowness = 0;
    });
  }

  #silence(server: Server): void {
    server.silent = true;
    this.#undoLater(`silent ${server.name}`, "it accepts requests and never answers", () => {
      server.silent = false;
    });
  }

  #forgetScripts(server: Server): void {
    server.forgetScripts();
    this.#note(`scripts forgotten ${server.name}`);
  }

  #crash(server: Server): void {
    if (!server.up) return;
    server.crash();
    const forgets = !this.#world.keeps("kept memory") && this.#draw.chance(0.7);
    this.#world.count(forgets ? "restart without memory" : "restart with memory");
    const detail = `it restarts ${forgets ? "without" : "with"} its memory`;
    const start = () => {
      if (forgets) server.forget();
      server.up = true;
    };
    if (!forgets) this.#undoLater(`down ${server.name}`, detail, start);
    else this.#undoAt(this.#world.now + this.#absence(), `down, forgets ${server.name}`, detail, start);
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
      const server = this.#anyServer();
      const by = this.#draw.between(-ttl, 2 * ttl);
      server.offset += by;
      this.#note(`${clockSet(by)} ${server.name}`);
      this.#world.count("endpoint's clock set");
      return;
    }
    if (!this.#world.keeps("kept memory") && this.#world.keeps("agreeing clocks")) return;
    const process = this.#anyProcess();
    if (this.#world.keeps("a clock that goes on") && !process.goesOnIf("set")) return;
    const step = this.#draw.pick([
      this.#draw.between(-2 * ttl, 2 * ttl),
      this.#draw.between(-3_600_000, 3_600_000),
    ]);
    this.#note(`${clockSet(Math.floor(step))} ${process.name}`);
    process.setClock(step);
    this.#clockSet(process);
  }

  #pause(process: Process): void {
    const fault = process.running ? `paused ${process.name}` : undefined;
    process.pause(false);
    this.#undoLater(fault, "its clocks go on", () => this.#resume(process));
  }

  #freeze(process: Process): void {
    if (!process.running) return;
    if (this.#world.keeps("a clock that goes on") && !process.goesOnIf("frozen")) return;
    process.pause(true);
    const since = this.#world.now;
    this.#undoLater(`frozen ${process.name}`, "its clocks stand still, too", () => {
      if (!this.#world.keeps("a clock that goes on")) process.setClock(since - this.#world.now);
      this.#resume(process, true);
    });
  }

  #kill(): void {
    if (this.#world.processes.filter(({ alive }) => alive).length <= 2) return;
    const process = this.#anyProcess();
    if (process.alive) this.#note(`killed ${process.name}`);
    process.kill();
  }

  /** Whichever fault ends first lets the process go on: the end of a pause may end a freeze, too. */
  #resume(process: Process, stoodStill = process.frozen): void {
    if (!process.running) this.#world.trace(() => `${process.name} goes on`);
    process.resume();
    if (stoodStill) this.#clockSet(process);
  }
}

const clockSet = (ms: number): string => `clock set by ${ms > 0 ? "+" : ""}${ms.toFixed()} ms`;
