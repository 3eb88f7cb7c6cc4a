import { explain, linearizableEach, type Model, type Result } from "../../linearizability/checker.ts";
import {
  type AccessRecord,
  fencedHistory,
  type GrantRecord,
  grantHistory,
} from "../../linearizability/history.ts";
import {
  fencedRegisterModel,
  type HoldInput,
  type Holding,
  lockModel,
} from "../../linearizability/models.ts";
import { invariants } from "../world/invariants.ts";
import type { Scenario } from "../world/scenario.ts";
import type { World } from "../world/world.ts";
import type { Hold } from "./holds.ts";

/** Checks that the histories of locks, and of the cells that their fences guard, are linearizable. */
export function checkHistories(
  world: World,
  holds: readonly Hold[],
  accesses: readonly AccessRecord[],
  retention: Scenario["retention"],
): void {
  // Fences of clients whose clocks are behind may fall after a long time.
  if (retention?.clocks === "behind" || !mustBeExplained(world, holds)) return;
  const grants = wholeHolds(holds).flatMap((hold) =>
    hold.resources.map((resource) => recordOf(world, hold, resource)),
  );
  const duplicates = !world.keeps("single execution");
  const outcomes = [
    linearizableEach(lockModel, grantHistory(grants, { duplicates })),
    linearizableEach(fencedRegisterModel(0), fencedHistory(accesses)),
  ];
  for (const { results } of outcomes) report(world, results);
  world.count("operations in histories", grants.length + accesses.length);
}

/**
 * Checks that the histories of permits are linearizable.
 *
 * @param pool the resource of all permits. Default: each hold's own resource
 */
export function checkPermits(
  world: World,
  holds: readonly Hold[],
  model: Model<Holding, HoldInput, boolean>,
  pool?: string,
): void {
  if (!mustBeExplained(world, holds)) return;
  const records = holds.map((hold) => recordOf(world, hold, pool ?? hold.resources[0]!));
  const duplicates = !world.keeps("single execution");
  report(world, linearizableEach(model, grantHistory(records, { duplicates })).results);
  world.count("operations in histories", records.length);
}

/** Without its assumptions a history need not be linearizable, and the search may take long. */
function mustBeExplained(world: World, holds: readonly Hold[]): boolean {
  // What an operator frees ends without its holder.
  if (holds.some(({ nonce, origin }) => world.freed.has(nonce) || world.freed.has(origin))) return false;
  if (!invariants.linearizable.every((assumption) => world.keeps(assumption))) return false;
  return world.keeps("single execution") || !holds.some(({ extensions }) => extensions.regrown);
}

function report(world: World, results: ReadonlyMap<string, Result<unknown, unknown>>): void {
  for (const [resource, result] of results) {
    world.check("linearizable", result.outcome === "yes", () => `${resource}: ${explain(result)}`);
  }
}

/** Holds that were handed off as one hold, from the first handle's acquire to the last handle's end. */
function wholeHolds(holds: readonly Hold[]): Hold[] {
  const whole = new Map<string, Hold>();
  for (const hold of holds) {
    const first = whole.get(hold.origin);
    const { ended, releaseInvoked, releaseReturned, released } = hold;
    whole.set(hold.origin, first ? { ...first, ended, releaseInvoked, releaseReturned, released } : hold);
  }
  return [...whole.values()];
}

function recordOf(world: World, hold: Hold, resource: string): GrantRecord {
  const { process, invoked, acquired, ended = world.now, fence, releaseInvoked, releaseReturned } = hold;
  // When a hold was over before its release, a repeated acquire may have left a value again: what the release then freed
  // proves nothing.
  const isOver = releaseInvoked !== undefined && ended < releaseInvoked;
  const released = isOver && !world.keeps("single execution") ? undefined : hold.released;
  const until = { validUntil: Math.max(ended, acquired), releaseInvoked, releaseReturned, released };
  return { resource, holder: process.name, invoked, acquired, fence, ...until };
}
