import { defineConfig } from "vitest/config";

/** The tests that run for every mutant of `npm run mutation`: those that are fast and deterministic. */
export default defineConfig({
  test: {
    include: ["test/{unit,contract,http}/**/*.test.ts"],
    exclude: [
      // About the local endpoints and the embedded engine, which are not mutated.
      "test/unit/{dev,testing}/**",
      "test/unit/layout.test.ts",
      "test/contract/endpoints/rest-protocol*.test.ts",
      "test/contract/endpoints/cluster.test.ts",
    ],
    env: { TEST_SETS: "few" },
    isolate: false,
    testTimeout: 30_000,
  },
});
