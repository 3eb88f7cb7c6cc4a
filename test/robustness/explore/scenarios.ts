import type { Scenario } from "./scenario.ts";
import { arrivalScenarios } from "./scenarios-arrivals.ts";
import { groupScenarios } from "./scenarios-groups.ts";
import { holdingScenarios } from "./scenarios-holding.ts";
import { lockScenarios } from "./scenarios-locks.ts";
import { syncScenarios } from "./scenarios-sync.ts";

/** All small worlds. */
export const scenarios: readonly Scenario[] = [
  ...lockScenarios,
  ...holdingScenarios,
  ...syncScenarios,
  ...groupScenarios,
  ...arrivalScenarios,
];
