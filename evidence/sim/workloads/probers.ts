import type { Actor } from "./actor.ts";

/** Whether a process probes by a run with a lock, and not by a lock: more at once would only take longer. */
export function isRunProber(actor: Actor): boolean {
  const { work } = actor.scenario;
  const locks = work.some((kind) => kind === "lock" || kind === "using" || kind === "burst");
  return work.includes("locked run") && (!locks || actor.actors.indexOf(actor) % 2 === 0);
}

/** Whether it is the operator of the probes: of two, one would free the other's locks. */
export function isOperator(actor: Actor): boolean {
  return actor === actor.actors.find(({ process }) => process.alive);
}
