import type { SharedContext } from "./actor.ts";
import { Calls } from "./calls.ts";
import { Holds } from "./holds.ts";
import { Ledger } from "./ledger.ts";
import type { Scenario } from "./scenario.ts";
import { WakeUps } from "./wake-ups.ts";
import { Wire } from "./wire.ts";
import type { World } from "./world.ts";

/** What all actors of a world use: nobody has called anything yet. */
export function sharedBy(world: World, scenario: Scenario): SharedContext {
  const wakeUps = new WakeUps(world);
  return {
    world,
    scenario,
    wire: new Wire(world, wakeUps),
    wakeUps,
    calls: new Calls(world, wakeUps),
    locks: new Holds(world, "mutual exclusion"),
    claims: new Holds(world, "one handler at a time"),
    ledger: new Ledger(world),
    kept: new Set(),
    actors: [],
  };
}
