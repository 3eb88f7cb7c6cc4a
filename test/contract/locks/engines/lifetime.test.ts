import { type EndpointSet, inTurns } from "../../../support/local-endpoints.ts";
import { lockLifetimeContract } from "../../../support/lock-lifetime-contract.ts";
import { setsOf } from "../../../support/sets.ts";

// How many endpoints there are matters to a quorum, not to a ttl: n = 2, 4 and 5 are those of the contract of locks.
const sets = setsOf([1, 3], [1, 3], [1, 3]).map((set): EndpointSet => ({ ...set, via: "fetch" }));

// These tests wait for ttls to pass, so the sets run concurrently.
inTurns(sets, lockLifetimeContract);
