import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // Most tests wait for servers and ttls, so that there are more workers than cores.
    maxWorkers: 4,
    // Files share a worker's modules and servers: loading them anew took a third of the time.
    isolate: false,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // The counts for the last line of .ci/run.
    ...(process.env.CI && {
      reporters: ["default", ["json", { outputFile: "node_modules/.cache/vitest.json" }]],
    }),
  },
});
