import { describe } from "vitest";
import { describeSet, type EndpointSet, inTurns, openLocal } from "../../support/local-endpoints.ts";
import { lockContract } from "../../support/lock-contract.ts";
import { lockLifetimeContract } from "../../support/lock-lifetime-contract.ts";
import { redisServer } from "../../support/redis-servers.ts";

const sets: EndpointSet[] = [
  ...([1, 3] as const).map((count) => ({ engine: "embedded", count, dialect: "redis", via: "sdk" }) as const),
  { engine: "embedded", count: 3, dialect: "upstash", via: "sdk" },
  ...(redisServer ? [{ engine: "redis", count: 3, dialect: "redis", via: "sdk" } as const] : []),
];

describe.each(sets.map((set) => [describeSet(set), set] as const))("%s", (_, set) => {
  lockContract(() => openLocal(set));
});

// These tests wait for ttls to pass, so the sets run concurrently.
inTurns(sets, lockLifetimeContract);
