import { explain, linearizableEach, type Model, type Result } from "../linearizability/checker.ts";
import {
  type AccessRecord,
  fencedHistory,
  type GrantRecord,
  grantHistory,
} from "../linearizability/history.ts";
import {
  fencedRegisterModel,
  type HoldInput,
  lockModel,
  type Hold as Permit,
} from "../linearizability/models.ts";
import { invariants } from "./assumptions.ts";
import type { Hold } from "./holds.ts";
import type { Scenario } from "./scenario.ts";
import type { World } from "./world.ts";

/** Looks for a sequential explanation of everything that happened to locks and to what their fences guard. */
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
    linearizableEach(fencedRegisterModel(0), fencedHistory(drawnOnce(grants), accesses)),
  ];
  for (const { results } of outcomes) report(world, results);
  world.count("operations in histories", grants.length + accesses.length);
}

/**
 * The same for permits.
 *
 * @param pool what they are permits of; if it is not told, each is of the resource that it names
 */
export function checkPermits(
  world: World,
  holds: readonly Hold[],
  model: Model<readonly Permit[], HoldInput, boolean>,
  pool?: string,
): void {
  if (!mustBeExplained(world, holds)) return;
  const records = holds.map((hold) => recordOf(world, hold, pool ?? hold.resources[0]!));
  const duplicates = !world.keeps("single execution");
  report(world, linearizableEach(model, grantHistory(records, { duplicates })).results);
  world.count("operations in histories", records.length);
}

/** Without what it needs, a history need not have an explanation, and it may take long to find out. */
function mustBeExplained(world: World, holds: readonly Hold[]): boolean {
  if (!invariants.linearizable.every((assumption) => world.keeps(assumption))) return false;
  return world.keeps("single execution") || !holds.some(({ extensions }) => extensions.regrown);
}

function report(world: World, results: ReadonlyMap<string, Result<unknown, unknown>>): void {
  for (const [resource, result] of results) {
    if (result.outcome !== "yes") world.violate("linearizable", `${resource}: ${explain(result)}`);
  }
}

/** What was handed over as one hold, from its first handle's beginning to its last handle's end. */
function wholeHolds(holds: readonly Hold[]): Hold[] {
  const whole = new Map<string, Hold>();
  for (const hold of holds) {
    const first = whole.get(hold.nonce);
    const { ended, releaseInvoked, releaseReturned, released } = hold;
    const endUnknown = hold.endUnknown || first?.endUnknown === true;
    whole.set(
      hold.nonce,
      first ? { ...first, endUnknown, ended, releaseInvoked, releaseReturned, released } : hold,
    );
  }
  return [...whole.values()];
}

/** Each fence of an owner once: two handles that it acquires at the same time may draw the same. */
function drawnOnce(grants: readonly GrantRecord[]): GrantRecord[] {
  const seen = new Set<string>();
  return grants.filter(({ owner, resource, fence }) => {
    const name = JSON.stringify([owner, resource, fence]);
    if (owner === undefined || !seen.has(name)) {
      seen.add(name);
      return true;
    }
    return false;
  });
}

function recordOf(world: World, hold: Hold, resource: string): GrantRecord {
  const { process, holder, nonce, invoked, acquired, ended = world.now, fence } = hold;
  const { releaseInvoked, releaseReturned } = hold;
  const owner = holder === nonce ? undefined : holder;
  // Of a hold that was over, a repeated take, or one that another of the owner's handles did not get through with,
  // may have left something again: what the release then freed says nothing.
  const repeats = owner !== undefined || !world.keeps("single execution");
  const over = hold.endUnknown || (releaseInvoked !== undefined && ended < releaseInvoked && repeats);
  const released = over ? undefined : hold.released;
  const until = {
    validUntil: hold.endUnknown ? acquired : Math.max(ended, acquired),
    releaseInvoked,
    releaseReturned,
    released,
  };
  return { resource, holder: process.name, owner, invoked, acquired, fence, ...until };
}
