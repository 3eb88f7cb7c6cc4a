import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // The counts for the last line of .ci/run.
    ...(process.env.CI && {
      reporters: ["default", ["json", { outputFile: "node_modules/.cache/vitest.json" }]],
    }),
  },
});
