import { type EndpointSet, inTurns } from "../../../support/local-endpoints.ts";
import { lockLifetimeContract } from "../../../support/lock-lifetime-contract.ts";
import { atLength, setsOf } from "../../../support/sets.ts";

// How many endpoints there are matters to a quorum, not to a ttl: n = 2 and 4 are those of the contract of locks.
const counts = atLength([1, 3], [1, 3, 5]);
const sets = setsOf(counts, [1, 3], [1, 3]).map((set): EndpointSet => ({ ...set, via: "fetch" }));

// These tests wait for ttls to pass, so the sets run concurrently.
inTurns(sets, lockLifetimeContract);
