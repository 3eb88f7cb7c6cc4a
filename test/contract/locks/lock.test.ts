import { describe } from "vitest";
import { setsToTest } from "../../support/few-sets.ts";
import { describeSet, type EndpointSet, openLocal } from "../../support/local-endpoints.ts";
import { lockContract } from "../../support/lock-contract.ts";
import { redisServer } from "../../support/redis-servers.ts";

const dialects = ["redis", "upstash"] as const;

// Five real servers would take long and show nothing new: only the client depends on n.
const real = { redis: [1, 2, 3], upstash: [3] };

const sets: EndpointSet[] = dialects.flatMap((dialect) => [
  ...[1, 2, 3, 4, 5].map((count) => ({ engine: "embedded", count, dialect, via: "fetch" }) as const),
  ...(redisServer ? real[dialect] : []).map(
    (count) => ({ engine: "redis", count, dialect, via: "fetch" }) as const,
  ),
]);

describe.each(setsToTest(sets).map((set) => [describeSet(set), set] as const))("%s", (_, set) => {
  lockContract(() => openLocal(set));
});
