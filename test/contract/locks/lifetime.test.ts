import { type EndpointSet, inTurns } from "../../support/local-endpoints.ts";
import { lockLifetimeContract } from "../../support/lock-lifetime-contract.ts";
import { setsOf } from "../../support/sets.ts";

const sets = setsOf([1, 2, 3, 4, 5], [1, 3]).map((set): EndpointSet => ({ ...set, via: "fetch" }));

// These tests wait for ttls to pass, so the sets run concurrently.
inTurns(sets, lockLifetimeContract);
