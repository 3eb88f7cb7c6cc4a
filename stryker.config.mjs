// Mutants by StrykerJS: `npm run mutation`, for one file `npm run mutation -- --mutate src/lock/lock.ts`; with `--dev`
// those of the command and the local endpoints, with tests of their own.

import process from "node:process";

const isDev = process.env.MUTATION === "dev";
const reports = `reports/mutation${isDev ? "-dev" : ""}`;

/** @type {import("@stryker-mutator/api/core").PartialStrykerOptions} */
export default {
  mutate: isDev
    ? // Redis behind an endpoint needs real servers, and the page a browser and real time.
      ["src/cli/**/*.ts", "local/src/{cli,rest}/**/*.ts", "!local/src/rest/redis/**"]
    : // The twins are held against their Lua by long tests. Modules of scripts are generated: `--lua` mutates those.
      ["src/**/*.ts", "!src/cli/**", "!src/twins/**", "!src/**/*.lua.ts"],
  testRunner: "vitest",
  vitest: { configFile: "vitest.mutation.config.ts", related: false },
  plugins: ["@stryker-mutator/vitest-runner", "./scripts/mutation/messages.mjs"],
  ignorers: ["messages"],
  coverageAnalysis: "perTest",
  ignoreStatic: true,
  concurrency: 1,
  incremental: true,
  incrementalFile: `${reports}/incremental.json`,
  reporters: ["progress-append-only", "clear-text", "html", "json"],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false, reportScoreTable: false },
  htmlReporter: { fileName: `${reports}/mutation.html` },
  jsonReporter: { fileName: `${reports}/mutation.json` },
  tempDirName: ".stryker-tmp",
  // A line at the begin of each file, for a type checker that does not run. A test compares generated files.
  disableTypeChecks: false,
  // Stryker would rewrite it with the API of TypeScript 6. Nothing in the sandbox needs it.
  tsconfigFile: "none",
  ignorePatterns: ["/reports", "/dist", "/bench", "/worker", "/examples", ".wrangler"],
  // For endless loops; where a test only waits, its own timeout comes first.
  timeoutMS: 12_000,
  dryRunTimeoutMinutes: 20,
};
