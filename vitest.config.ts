import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // Most tests wait for servers: a core that is left free for this process would be idle.
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // The counts for the last line of .ci/run.
    ...(process.env.CI && {
      reporters: ["default", ["json", { outputFile: "node_modules/.cache/vitest.json" }]],
    }),
  },
});
