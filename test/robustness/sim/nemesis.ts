import { stopwatch } from "../../../src/runtime.ts";
import type { Process } from "./process.ts";
import type { FaultKind, Scenario } from "./scenario.ts";
import type { Server } from "./server.ts";
import { fairWeather, type World } from "./world.ts";

/** Makes things go wrong until it is told to stop, and then heals them. */
export function unleash(world: World, scenario: Scenario, clockSet: (process: Process) => void): () => void {
  const { draw, processes, servers, scheduler } = world;
  const { faults, calm, ttl, storm } = scenario;
  // The longest that anything granted may stand, by the slowest clock.
  const longest = 2 * ttl * 1.1 + 100;
  let over = false;
  world.weather = storm;
  // One clock may be set, and then the other stand still, as long as the library looks at them in between.
  const look = (process: Process) => {
    if (world.keeps("a clock that goes on")) stopwatch(process);
    clockSet(process);
  };

  /** Undoes it after a while. */
  function forAWhile(undo: () => void): void {
    scheduler.at(world.now + draw.between(0, draw.pick([0.5, 1, 3]) * ttl), undo);
  }

  function cut(process: Process, server: Server): void {
    const way = `${process.name}>${server.name}`;
    world.cuts.set(way, draw.pick(["silent", "refused"]));
    forAWhile(() => world.cuts.delete(way));
  }

  const inflict: Record<FaultKind, () => void> = {
    "link cut": () => cut(draw.pick(processes), draw.pick(servers)),
    "endpoint cut off": () => {
      const server = draw.pick(servers);
      for (const process of processes) cut(process, server);
    },
    "endpoint slow": () => {
      const server = draw.pick(servers);
      server.slowness = draw.between(0, ttl);
      forAWhile(() => {
        server.slowness = 0;
      });
    },
    "endpoint silent": () => {
      const server = draw.pick(servers);
      server.silent = true;
      forAWhile(() => {
        server.silent = false;
      });
    },
    "endpoint crash": () => {
      const server = draw.pick(servers);
      if (!server.up) return;
      server.up = false;
      const forgets = !world.keeps("kept memory") && draw.chance(0.7);
      world.count(forgets ? "restart without memory" : "restart with memory");
      const start = () => {
        if (forgets) server.forget();
        server.up = true;
      };
      // One that comes back at once with nothing is what locks cannot stand.
      if (!forgets) forAWhile(start);
      else if (!world.keeps("absence after memory loss"))
        scheduler.at(world.now + draw.between(0, 20), start);
      else scheduler.at(world.now + longest + draw.between(0, ttl), start);
    },
    "clock set": () => {
      if (!world.keeps("bounded drift") && draw.chance(0.5)) {
        draw.pick(servers).offset += draw.between(-ttl, 2 * ttl);
        world.count("endpoint's clock set");
        return;
      }
      if (!world.keeps("kept memory") && world.keeps("agreeing clocks")) return;
      const process = draw.pick(processes);
      if (process.frozen && world.keeps("a clock that goes on")) return;
      process.setClock(draw.pick([draw.between(-2 * ttl, 2 * ttl), draw.between(-3_600_000, 3_600_000)]));
      look(process);
    },
    "client paused": () => {
      const process = draw.pick(processes);
      process.pause(false);
      forAWhile(() => process.resume());
    },
    "client frozen": () => {
      const process = draw.pick(processes);
      if (!process.running) return;
      look(process);
      process.pause(true);
      const since = world.now;
      forAWhile(() => {
        if (!world.keeps("a clock that goes on")) process.setClock(since - world.now);
        process.resume();
        look(process);
      });
    },
    "client killed": () => {
      if (processes.filter(({ alive }) => alive).length > 2) draw.pick(processes).kill();
    },
  };

  function next(): void {
    if (over) return;
    const kind = draw.pick(faults);
    world.count(kind);
    world.trace(() => `fault: ${kind}`);
    inflict[kind]();
    scheduler.at(world.now + draw.between(0, 2 * calm), next);
  }
  if (faults.length > 0) scheduler.at(draw.between(0, 2 * calm), next);

  return function heal(): void {
    over = true;
    world.trace(() => "faults end");
    world.weather = fairWeather;
    world.cuts.clear();
    for (const server of servers) {
      server.slowness = 0;
      server.silent = false;
    }
    for (const process of processes) process.resume();
  };
}
