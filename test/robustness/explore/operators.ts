import { forceRelease } from "../../../src/index.ts";
import { quorumOf } from "../../../src/quorum/tally.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import type { Actor } from "./actor.ts";
import { textAt } from "./store.ts";

// What operators do with what others hold. Each waits 100 ms for each answer.

const timeout = 100;

/** Frees a resource, no matter who holds it. */
export async function free(actor: Actor, resource: string): Promise<void> {
  const { world, report } = actor.stage;
  const { client } = actor;
  client.timeout = timeout;
  const key = keyOf("redlock", "lock", resource);
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
