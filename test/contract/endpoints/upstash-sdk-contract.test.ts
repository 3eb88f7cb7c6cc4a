import { eachEngine } from "../../support/each-engine.ts";
import { describeSet, type EndpointSet, openLocal } from "../../support/local-endpoints.ts";
import { lockContract } from "../../support/lock-contract.ts";

const sets: EndpointSet[] = [
  { engine: "embedded", count: 1, dialect: "redis", via: "sdk" },
  { engine: "embedded", count: 3, dialect: "redis", via: "sdk" },
  { engine: "embedded", count: 3, dialect: "upstash", via: "sdk" },
  { engine: "redis", count: 3, dialect: "redis", via: "sdk" },
];

eachEngine(sets.map((set) => [describeSet(set), set] as const))("%s", (_, set) => {
  lockContract(() => openLocal(set));
});
