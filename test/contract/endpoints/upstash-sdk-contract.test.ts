import { describe } from "vitest";
import { describeSet, type EndpointSet, inTurns, openLocal } from "../../support/local-endpoints.ts";
import { lockContract } from "../../support/lock-contract.ts";
import { lockLifetimeContract } from "../../support/lock-lifetime-contract.ts";
import { redisServer } from "../../support/redis-servers.ts";
import { atLength } from "../../support/sets.ts";

const sets: EndpointSet[] = [
  ...atLength<EndpointSet>(
    [],
    [
      { engine: "embedded", count: 1, dialect: "redis", via: "sdk" },
      { engine: "embedded", count: 3, dialect: "redis", via: "sdk" },
    ],
  ),
  { engine: "embedded", count: 3, dialect: "upstash", via: "sdk" },
  ...(redisServer ? [{ engine: "redis", count: 3, dialect: "redis", via: "sdk" } as const] : []),
];

describe.each(sets.map((set) => [describeSet(set), set] as const))("%s", (_, set) => {
  lockContract(() => openLocal(set));
});

// These tests wait for ttls to pass, so the sets run concurrently.
inTurns(sets, lockLifetimeContract);
