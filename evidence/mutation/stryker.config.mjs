// Mutants by StrykerJS: `node evidence/mutation.mjs`, for one file `node evidence/mutation.mjs --mutate src/lock/lock.ts`; with `--dev`
// those of the command and the local endpoints, with tests of their own.

import process from "node:process";
import { fileURLToPath } from "node:url";

const isDev = process.env.MUTATION === "dev";
const reports = `reports/mutation${isDev ? "-dev" : ""}`;

/** @type {import("@stryker-mutator/api/core").PartialStrykerOptions} */
export default {
  mutate: isDev
    ? // Redis behind an endpoint needs real servers, and the page a browser and real time.
      ["src/cli/**/*.ts", "local/src/{cli,rest}/**/*.ts", "!local/src/rest/redis/**"]
    : // Modules of scripts are generated: `--lua` mutates those.
      ["src/**/*.ts", "!src/cli/**", "!src/**/*.lua.ts"],
  testRunner: "vitest",
  vitest: { configFile: "evidence/mutation/vitest.config.ts", related: false },
  // Absolute: Stryker looks for packages from the project, and for files from its own.
  plugins: ["../node_modules/@stryker-mutator/vitest-runner/dist/src/index.js", "messages.mjs"].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  ),
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
