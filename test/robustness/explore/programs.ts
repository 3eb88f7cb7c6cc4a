import type { Actor } from "./actor.ts";
import type { Program } from "./scenario.ts";

// What the programs of several worlds have in common. Times are ms.

/** Always the same pause, in ms, which checks can read. */
export function pauses(ms: number): (() => number) & { readonly min: number } {
  return Object.assign(() => ms, { min: ms });
}

/** A call that tries once. It waits so long for each answer, and where it has further rounds, before each of them. */
export const oneTry = { timeout: 100, wait: 0, backoff: pauses(60) };

/** The bounds of most worlds, and those of worlds with too much to choose for that. */
export const usual = { test: 1, long: 2 };
export const large = { test: 0, long: 1 };
/** Those of worlds that the long run explores, and `npm test` only plays straight on. */
export const straightInTests = { test: 0, long: 2 };

/** One program after another. */
export function inOrder(...programs: readonly Program[]): Program {
  return async (actor) => {
    for (const program of programs) await program(actor);
  };
}

/** Calls something at each of these times, or as soon as the call before has ended. */
export function at(times: readonly number[], call: (actor: Actor) => Promise<void>): Program {
  return async (actor) => {
    for (const time of times) {
      await actor.until(time);
      await call(actor);
    }
  };
}

/** Only lets time pass: what is late arrives after one of these times. */
export function pass(...times: readonly number[]): Program {
  return at(times, () => Promise.resolve());
}
