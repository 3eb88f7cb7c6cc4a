import { describe } from "vitest";
import { openLocal } from "../../../support/local-endpoints.ts";
import { lockContract } from "../../../support/lock-contract.ts";
import { setsOf } from "../../../support/sets.ts";

// More real servers would take long and show nothing new: only the client depends on n.
const sets = setsOf([1, 2, 3, 5], [1, 3], [1, 3]);

describe.each(sets)("$count × $engine, $dialect dialect", (set) => {
  lockContract(() => openLocal(set));
});
