import process from "node:process";
import { configDefaults, defineConfig } from "vitest/config";
import { long, reporters, resolve, settings } from "./vitest.config.ts";

const everything = process.env.FULL === "true";

// What takes too long for `npm test`: sockets, queues, the programs of the pages, faults, mutants, and the contracts on the
// combinations of engine, n and dialect that it leaves out. With FULL=true, as in `.ci/run --full`, also more seeds and schedules,
// and what is long by itself.
export default defineConfig({
  resolve,
  test: {
    ...settings,
    ...reporters("vitest-long.json"),
    include: [
      "{test,evidence,local/test,lock-server/test}/**/*.long.test.ts",
      "test/contract/{idempotency,sync}/engines/*.test.ts",
      "test/contract/locks/engines/lock.test.ts",
      ...long,
      ...(everything
        ? ["{test,evidence,local/test,lock-server/test}/**/*.full.test.ts", "evidence/fuzz/*.test.ts"]
        : []),
    ],
    exclude: [...configDefaults.exclude, ...(everything ? [] : ["**/*.full.test.ts"])],
    testTimeout: 120_000,
    env: { SETS: "rest", ...(everything && { RUNS: "2" }) },
  },
});
