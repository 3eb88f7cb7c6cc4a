import { defineConfig } from "vitest/config";
import { reporters, resolve, settings } from "./vitest.config.ts";

// What takes too long for `npm test`: chaos, all mutants, more seeds and schedules, and the contracts on all
// combinations of engine, n and dialect.
export default defineConfig({
  resolve,
  test: {
    ...settings,
    ...reporters("vitest-long.json"),
    include: [
      "{test,local/test,picture/test}/**/*.long.test.ts",
      "test/contract/{idempotency,sync}/engines/*.test.ts",
      "test/contract/sync/scripts/*.test.ts",
      "test/contract/sync/**/{model,schedules,holds-model}.test.ts",
      "test/contract/locks/engines/{lock,lifetime}.test.ts",
      "test/http/{api,delivery,locked,webhook}.test.ts",
      "test/contract/endpoints/{sockets,upstash-sdk}-contract.test.ts",
      "local/test/differential/*.test.ts",
      "test/robustness/{fuzz,twins}/*.test.ts",
    ],
    testTimeout: 120_000,
    env: { SETS: "all", SCHEDULES: "200", RUNS: "2" },
  },
});
