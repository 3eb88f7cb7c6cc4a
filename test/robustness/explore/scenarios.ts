import type { Scenario } from "./scenario.ts";
import { arrivalScenarios } from "./scenarios-arrivals.ts";
import { debounceScenarios } from "./scenarios-debounce.ts";
import { groupScenarios } from "./scenarios-groups.ts";
import { holdingScenarios } from "./scenarios-holding.ts";
import { lockedRunScenarios } from "./scenarios-locked-runs.ts";
import { lockScenarios } from "./scenarios-locks.ts";
import { onceScenarios } from "./scenarios-once.ts";
import { operatorScenarios } from "./scenarios-operators.ts";
import { runScenarios } from "./scenarios-runs.ts";
import { semaphoreScenarios } from "./scenarios-semaphores.ts";

/** All small worlds. */
export const scenarios: readonly Scenario[] = [
  ...lockScenarios,
  ...holdingScenarios,
  ...runScenarios,
  ...lockedRunScenarios,
  ...operatorScenarios,
  ...semaphoreScenarios,
  ...groupScenarios,
  ...arrivalScenarios,
  ...onceScenarios,
  ...debounceScenarios,
];
