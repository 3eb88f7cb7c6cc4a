import { type EndpointSet, inTurns } from "../../support/local-endpoints.ts";
import { lockLifetimeContract } from "../../support/lock-lifetime-contract.ts";
import { redisServer } from "../../support/redis-servers.ts";

// The dialects differ in the command that extends a lock, not in what an extension means for n endpoints.
const sets: EndpointSet[] = [
  ...[1, 2, 3, 4, 5].map((count) => ({ engine: "embedded", count, dialect: "redis", via: "fetch" }) as const),
  ...[1, 3].map((count) => ({ engine: "embedded", count, dialect: "upstash", via: "fetch" }) as const),
  ...(redisServer
    ? ([
        { engine: "redis", count: 1, dialect: "redis", via: "fetch" },
        { engine: "redis", count: 3, dialect: "upstash", via: "fetch" },
      ] as const)
    : []),
];

// These tests wait for ttls to pass, so the sets run concurrently.
inTurns(sets, lockLifetimeContract);
