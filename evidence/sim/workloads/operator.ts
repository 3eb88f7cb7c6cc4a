import { forceRelease, type Inspection, inspect } from "../../../src/inspect/index.ts";
import type { Hold } from "../checks/holds.ts";
import { keyOf, quorumOf } from "../field.ts";
import { type Invariant, invariants } from "../world/invariants.ts";
import type { Actor } from "./actor.ts";
import { recordHold, release, verify } from "./handles.ts";
import { isOperator } from "./probers.ts";
import type { Workload } from "./workload.ts";

// What operators do with the locks of others: inspect them, and free them.

/** What is looked at. */
interface Target {
  readonly resource: string;
  /** Its key in Redis. */
  readonly key: string;
  /** ms for each request. */
  readonly timeout: number;
}

/** Locks of others that are inspected and freed. */
export class OperatorWorkload implements Workload {
  async perform(actor: Actor): Promise<void> {
    const { draw, scenario } = actor;
    const timeout = Math.max(5, draw.pick([0.3, 1]) * Math.min(1_000, scenario.ttl));
    actor.process.timeout = timeout;
    const target = targetOf(draw.pick(scenario.resources), timeout);
    if (draw.chance(0.3)) await free(actor, target);
    else await look(actor, target);
  }

  /** A lock that is held is shown, freed, and shown as free; its holder learns of it. */
  async probe(actor: Actor, bound: number): Promise<void> {
    if (!isOperator(actor)) return;
    const { world, calls, process, redlock } = actor;
    const target = targetOf("operated", 1_000);
    const invoked = world.now;
    const outcome = await calls.make(process, {
      what: "probe: acquire what is freed",
      bound,
      run: () => redlock.acquire(target.resource, { ttl: 60_000, wait: bound }),
    });
    if ("error" in outcome) return;
    const lock = outcome.value;
    const { resources, token: nonce } = lock;
    const grant = { handle: lock, holds: actor.locks, resources, nonce };
    const held = recordHold(actor, { ...grant, invoked, listens: false });
    const before = await look(actor, target);
    const freed = await free(actor, target);
    const after = await look(actor, target);
    const states = `${before?.held}, ${freed}, ${after?.held}`;
    const isRight = before?.held === true && freed === true && after?.held === false;
    world.check("an operator frees it", isRight, () => `${process.name}: ${states}`);
    await verify(actor, held, 1_000);
    world.check("an operator frees it", lock.remaining() <= 0, () => `${process.name} still relies on it`);
    await release(actor, held, 1_000);
  }
}

/** A resource, asked about with ms for each request. */
function targetOf(resource: string, timeout: number): Target {
  return { resource, key: keyOf("lock", resource), timeout };
}

/** Inspects a resource. Undefined: too few endpoints answered. */
async function look(actor: Actor, { resource, timeout }: Target): Promise<Inspection | undefined> {
  const { world, calls, process, redlock } = actor;
  const during = actor.locks.all.filter((hold) => hold.resources.includes(resource) && isHeld(actor, hold));
  const outcome = await calls.make(process, {
    counted: "inspect",
    what: `inspect ${resource}`,
    bound: timeout,
    codes: ["NO_QUORUM"],
    run: () => inspect(redlock, resource, { timeout }),
  });
  if ("error" in outcome) return undefined;
  const inspection = outcome.value;
  world.count(`inspected: ${inspection.held ? "held" : "free"}`);
  // What was held all the time stood on a quorum all the time.
  for (const hold of during) {
    if (!isHeld(actor, hold)) continue;
    const needs = invariants["what is held stands"];
    world.check(
      "inspections are true",
      inspection.held && inspection.note === hold.note,
      () =>
        `${process.name}: ${resource} is held: ${inspection.held} (${inspection.note}), but ${hold.process.name} holds it (${hold.note})`,
      hold.extensions.regrown ? [...needs, "single execution"] : needs,
    );
  }
  return inspection;
}

/** Whether a hold is valid, and nobody ends it. */
function isHeld({ world }: Actor, hold: Hold): boolean {
  if (hold.ended !== undefined || hold.releaseInvoked !== undefined) return false;
  return hold.process.alive && hold.remaining() > 0 && !world.freed.has(hold.nonce);
}

/** Frees a resource. Undefined: too few endpoints answered. */
async function free(actor: Actor, { resource, key, timeout }: Target): Promise<boolean | undefined> {
  const { world, wire, calls, process, redlock, locks } = actor;
  const before = locks.all.filter((hold) => hold.resources.includes(resource));
  const outcome = await calls.make(process, {
    counted: "free",
    what: `free ${resource}`,
    bound: timeout,
    codes: ["NO_QUORUM"],
    run: () => forceRelease(redlock, resource, { timeout }),
  });
  if ("error" in outcome) return undefined;
  const said = outcome.value;
  world.count(said ? "freed" : "free: nothing there");
  const trails = wire.trailsOf(wire.lastRound(process, `free ${key}`)!);
  const freed = trails.filter((trail) => trail.freed).length;
  const answered = trails.filter((trail) => trail.answeredFree).length;
  const quorum = quorumOf(world.servers.length);
  const invariant: Invariant = "an operator frees it";
  const what = () => `${process.name}: ${resource}: ${said}, ${freed} freed it, ${answered} have answered`;
  world.check(invariant, answered >= quorum && (!said || freed > 0), what);
  for (const { standing } of before) {
    const stands = standing?.().filter((ms) => ms > 0).length ?? 0;
    const detail = () => `${process.name}: ${resource} still stands at ${stands}`;
    // A repeated request may acquire once more what was freed.
    world.check(invariant, stands < quorum, detail, ["single execution"]);
  }
  return said;
}
