import type { Actor } from "./actor.ts";
import type { Outcome } from "./calls.ts";

/** What a call runs at most once. */
export interface Routine {
  /** ms for which it runs. */
  readonly length: number;
  /** What it throws, if anything. */
  readonly failure: Error | undefined;
  readonly result: object;
  hasBegun: boolean;
}

/** A routine that runs for so many ms. Some throw. */
export function drawRoutine({ draw }: Actor, length: number): Routine {
  const failure = draw.chance(0.15) ? new Error("the routine failed") : undefined;
  return { length, failure, result: {}, hasBegun: false };
}

/** Runs it. `ended`: called before it returns or throws. */
export async function runRoutine(
  actor: Actor,
  routine: Routine,
  ended = (): void => undefined,
): Promise<object> {
  routine.hasBegun = true;
  await actor.sleep(routine.length);
  ended();
  if (routine.failure) throw routine.failure;
  return routine.result;
}

/**
 * Checks that a call says what has become of its routine. A call that rejects has not run it, unless it threw.
 *
 * @returns whether the call has returned without having run it
 */
export function checkRoutine(
  { world, process }: Actor,
  { failure, result, hasBegun }: Routine,
  outcome: Outcome<{ readonly ran: boolean; readonly value?: unknown }>,
): boolean {
  const said = "value" in outcome ? outcome.value : undefined;
  const isRight = said
    ? said.ran === hasBegun && (!said.ran || said.value === result)
    : !hasBegun || ("error" in outcome && outcome.error === failure);
  const what = () => `${process.name}: ${JSON.stringify(outcome)} of a routine that began: ${hasBegun}`;
  world.check("the routine's outcome wins", isRight, what);
  return said?.ran === false;
}
