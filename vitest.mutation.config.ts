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
    env: { SETS: "few" },
    isolate: false,
    // A mutant that makes a test hang is killed by this. What passes takes less than a second on an idle machine.
    testTimeout: 6_000,
  },
});
