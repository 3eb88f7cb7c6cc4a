import { expect, test } from "vitest";
import type { Assumption } from "./assumptions.ts";
import { Draw } from "./draw.ts";
import { startNemesis } from "./nemesis.ts";
import { Process } from "./process.ts";
import { drawScenario } from "./scenario.ts";
import { World } from "./world.ts";

const clocks: Assumption = "a clock that goes on";

/** Counts how often one of its clocks was set, or stood still, since both were read. */
class CountingProcess extends Process {
  most = 0;
  #unread = 0;

  override monotonic(): number {
    this.#unread = 0;
    return super.monotonic();
  }

  override setClock(ms: number): void {
    super.setClock(ms);
    this.#changed();
  }

  override pause(frozen: boolean): void {
    if (frozen) this.#changed();
    super.pause(frozen);
  }

  #changed(): void {
    this.#unread += 1;
    this.most = Math.max(this.most, this.#unread);
  }
}

/** The most changes of a process's clocks between two readings, under many faults that overlap. */
function mostChanges(dropped: readonly Assumption[]): number {
  const draw = new Draw(1);
  const world = new World(draw, dropped, { traced: false, recorded: false });
  const process = new CountingProcess("p0", world.scheduler, draw.fork(), 1);
  world.processes.push(process);
  const faults = ["clock set", "client paused", "client frozen"] as const;
  startNemesis(world, { ...drawScenario(draw), faults, faultInterval: 20 }, () => undefined);
  world.scheduler.pass(20_000);
  return process.most;
}

test(`only without "${clocks}" do both clocks of a process change between two readings`, () => {
  expect(mostChanges([clocks])).toBeGreaterThan(1);
  expect(mostChanges([])).toBe(1);
});
