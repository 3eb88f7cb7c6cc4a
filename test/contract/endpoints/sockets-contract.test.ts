import { describe } from "vitest";
import { type EndpointSet, openLocal } from "../../support/local-endpoints.ts";
import { lockContract } from "../../support/lock-contract.ts";
import { redisServer } from "../../support/redis-servers.ts";

const sets = (["ioredis", "ioredis 5, exact", "node-redis", "node-redis pool"] as const).flatMap((via) =>
  [1, 3].map((count): EndpointSet => ({ engine: "redis", count, dialect: "redis", via })),
);

describe.skipIf(!redisServer).each(sets)("$count × $via", (set) => {
  lockContract(() => openLocal(set));
});
