import { forgetKey, Idempotency } from "../../../src/idempotency/index.ts";
import { forceRelease, inspect } from "../../../src/index.ts";
import { quorumOf } from "../../../src/quorum/tally.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { checkForgotten, checkInspection } from "../sim/inspections.ts";
import { recordKeyOf } from "../sim/run-histories.ts";
import type { Actor } from "./actor.ts";
import type { Hold } from "./holds.ts";
import { textAt } from "./store.ts";

// What operators do with what others hold. Each waits 100 ms for each answer.

const timeout = 100;

/** Frees a resource, no matter who holds it. */
export async function free(actor: Actor, resource: string): Promise<void> {
  const { world, report, trails } = actor.stage;
  const { client } = actor;
  client.timeout = timeout;
  const key = keyOf("redlock", "lock", resource);
  trails.operated.frees(key);
  const holders = () => world.servers.map((server) => textAt(world.contentsOf(server), key));
  const before = holders();
  const said = await actor.call({
    what: `free ${resource}`,
    bound: timeout,
    codes: ["NO_QUORUM"],
    run: () => forceRelease(actor.redlock, resource, { timeout }),
  });
  if (said === undefined) return;
  world.note(`${client.name} freed ${resource}: ${said}`);
  // Nobody acquires anew what had stood before, by a nonce that belongs to one round: except by "single execution".
  if (world.events.has("repeated")) return;
  const after = holders();
  const stays = before.filter((text, index) => text !== undefined && after[index] === text).length;
  if (stays < quorumOf(world.servers.length)) return;
  report("an operator frees it", `${client.name}: ${resource} still stands at ${stays} endpoints`);
}

/** Inspects a resource. */
export async function look(actor: Actor, resource: string): Promise<void> {
  const { world, report, checks, holds, trails } = actor.stage;
  const { client } = actor;
  client.timeout = timeout;
  const asked = world.time;
  const isHeld = (hold: Hold) =>
    hold.resources.includes(resource) && !hold.isOver && !hold.client.frozen && hold.remaining() > 0;
  const during = holds.all.filter(isHeld);
  const inspection = await actor.call({
    what: `inspect ${resource}`,
    bound: timeout,
    codes: ["NO_QUORUM"],
    run: () => inspect(actor.redlock, resource, { timeout }),
  });
  if (!inspection) return;
  const looks = trails.operated.looksSince(client, keyOf("redlock", "lock", resource), asked);
  const of = `${client.name}: ${resource}`;
  checkInspection(checks, of, inspection, { looks, count: world.servers.length });
  // What was held all the time stood on a quorum all the time.
  const held = during.find(isHeld);
  if (!held || inspection.held) return;
  report("inspections are true", `${of} is free, and ${held.client.name} holds it`);
}

/** Forgets a key. */
export async function forgetAs(actor: Actor, key: string): Promise<void> {
  const { world, checks, trails } = actor.stage;
  const { client } = actor;
  client.timeout = timeout;
  const asked = world.time;
  const said = await actor.call({
    what: `forget ${key}`,
    // It reads and removes, at most three times, and reads once more.
    bound: 8 * timeout,
    codes: ["IN_PROGRESS", "NO_QUORUM"],
    run: () => forgetKey(new Idempotency(actor.redlock), key, { scope: "sim", timeout }),
  });
  if (said === undefined) return;
  world.note(`${client.name} forgot ${key}: ${said}`);
  const looks = trails.operated.looksSince(client, recordKeyOf(key), asked);
  checkForgotten(checks, `${client.name}: ${key}`, said, { looks, count: world.servers.length });
}
