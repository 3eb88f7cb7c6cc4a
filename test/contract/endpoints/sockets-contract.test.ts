import { eachEngine } from "../../support/each-engine.ts";
import { describeSet, type EndpointSet, openLocal } from "../../support/local-endpoints.ts";
import { lockContract } from "../../support/lock-contract.ts";

const sets = (["ioredis", "ioredis 5, exact", "node-redis"] as const).flatMap((via) =>
  [1, 3].map((count): EndpointSet => ({ engine: "redis", count, dialect: "redis", via })),
);

eachEngine(sets.map((set) => [describeSet(set), set] as const))("%s", (_, set) => {
  lockContract(() => openLocal(set));
});
