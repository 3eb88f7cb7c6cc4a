import { describe } from "vitest";
import { describeSet, type EndpointSet, openLocal } from "../support/local-endpoints.ts";
import { lockLifetimeContract } from "../support/lock-lifetime-contract.ts";
import { redisServer } from "../support/redis-servers.ts";

const dialects = ["redis", "upstash"] as const;

const sets: EndpointSet[] = dialects.flatMap((dialect) => [
  ...[1, 2, 3, 4, 5].map((count) => ({ engine: "embedded", count, dialect, via: "fetch" }) as const),
  ...(redisServer ? [1, 3] : []).map((count) => ({ engine: "redis", count, dialect, via: "fetch" }) as const),
]);

// These tests wait for ttls to pass, so the sets do it together; the tests of one set share its endpoints and
// take turns.
describe.concurrent.each(sets.map((set) => [describeSet(set), set] as const))("%s", (_, set) => {
  describe.sequential("in turn", () => lockLifetimeContract(() => openLocal(set)));
});
