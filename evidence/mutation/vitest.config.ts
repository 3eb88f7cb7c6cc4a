import process from "node:process";
import { defineConfig } from "vitest/config";
import { resolve, settings } from "../../vitest.config.ts";

/** Those of `node evidence/mutation.mjs --dev`. What they start as a process of its own has no mutants. */
const dev = {
  include: ["test/unit/cli/**/*.test.ts", "local/test/{cli,rest,rest-protocol}/**/*.test.ts"],
  exclude: [
    "local/test/rest/redis/**",
    "local/test/rest/start.test.ts",
    "local/test/cli/process.test.ts",
    // About Redis behind an endpoint, and about a client.
    "local/test/rest-protocol/{cluster,rest-protocol-{emulation,scripts,sdk}}.test.ts",
  ],
};

/** The tests that run for the mutants of `node evidence/mutation.mjs`: those that are fast and deterministic. */
const library = {
  include: ["test/{unit,contract,http,otel}/**/*.test.ts"],
  exclude: [
    "**/*.long.test.ts",
    // About the local endpoints and the embedded engine, which are not mutated, and about this project's files.
    "test/unit/cli/**",
    "test/unit/layout.test.ts",
    // Over HTTP, or with real waiting. What they show of one client, tests in virtual time show as well.
    "test/contract/endpoints/{secrets,upstash-sdk-contract}.test.ts",
    "test/contract/idempotency/servers.test.ts",
    "test/contract/locks/engines/{budget,fences,names}.test.ts",
    "test/contract/sync/engines/*.test.ts",
    "test/http/{api,workerd}.test.ts",
  ],
};

export default defineConfig({
  resolve,
  test: {
    ...(process.env.MUTATION === "dev" ? dev : library),
    env: { SETS: "few" },
    isolate: false,
    expect: settings.expect,
    // A mutant that makes a test hang is killed by this.
    testTimeout: 10_000,
  },
});
