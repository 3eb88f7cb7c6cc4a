import { describe } from "vitest";
import { type EndpointSet, openLocal, titled } from "../../../support/local-endpoints.ts";
import { lockContract } from "../../../support/lock-contract.ts";
import { setsOf } from "../../../support/sets.ts";

// More real servers would take long and show nothing new: only the client depends on n.
const sets = setsOf([1, 2, 3, 5], [1, 3], [1, 3]).map((set): EndpointSet => ({ ...set, via: "fetch" }));

describe.each(titled(sets))("%s", (_, set) => {
  lockContract(() => openLocal(set));
});
