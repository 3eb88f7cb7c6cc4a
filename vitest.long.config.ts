import process from "node:process";
import { defineConfig } from "vitest/config";
import { reporters, resolve, settings } from "./vitest.config.ts";

const everything = process.env.FULL === "true";

// What takes too long for `npm test`: the playground, faults, mutants, and the contracts on the combinations of engine, n and dialect
// that it leaves out. With FULL=true, as in `.ci/run --full`, also more seeds and schedules, and what is long by itself.
export default defineConfig({
  resolve,
  test: {
    ...settings,
    ...reporters("vitest-long.json"),
    include: [
      "{test,evidence,local/test,lock-server/test}/**/*.long.test.ts",
      "test/contract/{idempotency,sync}/engines/*.test.ts",
      "test/contract/locks/engines/lock.test.ts",
      "test/contract/endpoints/{sockets,upstash-sdk}-contract.test.ts",
      "evidence/twins/*.test.ts",
      ...(everything
        ? [
            "{test,evidence,local/test}/**/*.full.test.ts",
            "test/http/{api,delivery,locked,webhook}.test.ts",
            "evidence/fuzz/*.test.ts",
          ]
        : []),
    ],
    testTimeout: 120_000,
    env: { SETS: "rest", ...(everything && { RUNS: "2" }) },
  },
});
