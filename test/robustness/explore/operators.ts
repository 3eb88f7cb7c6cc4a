import { forget } from "../sim/work-forget.ts";
import { free, look, targetOf } from "../sim/work-operator.ts";
import type { Actor } from "./actor.ts";

// What operators do with what others hold. Each waits 100 ms for each answer.

const timeout = 100;

/** Frees a resource, no matter who holds it. */
export async function freeAs(actor: Actor, resource: string): Promise<void> {
  Object.assign(actor.client, { timeout, operates: true });
  await free(actor.simulated, targetOf(resource, timeout));
}

/** Inspects a resource. */
export async function lookAs(actor: Actor, resource: string): Promise<void> {
  actor.client.timeout = timeout;
  await look(actor.simulated, targetOf(resource, timeout));
}

/** Forgets a key. */
export async function forgetAs(actor: Actor, key: string): Promise<void> {
  actor.client.timeout = timeout;
  await forget(actor.simulated, { key, timeout });
}
