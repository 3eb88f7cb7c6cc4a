import { describe } from "vitest";
import { type EndpointSet, openLocal } from "../../support/local-endpoints.ts";
import { lockContract } from "../../support/lock-contract.ts";
import { canRun } from "../../support/redis-servers.ts";

const sets: EndpointSet[] = [
  { engine: "embedded", count: 1, dialect: "redis", via: "sdk" },
  { engine: "embedded", count: 3, dialect: "redis", via: "sdk" },
  { engine: "embedded", count: 3, dialect: "upstash", via: "sdk" },
  { engine: "redis", count: 3, dialect: "redis", via: "sdk" },
];

describe.each(sets.filter(canRun))("$count × $engine, $dialect dialect", (set) => {
  lockContract(() => openLocal(set));
});
