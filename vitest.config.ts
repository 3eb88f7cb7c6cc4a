import process from "node:process";
import { fileURLToPath } from "node:url";
import { configDefaults, defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { beyondTests } from "./test/support/beyond-tests.ts";
import { MissingPrograms } from "./test/support/missing-programs.ts";
import { writeModules } from "./tools/lua.mjs";

// A script that was changed is tested as it is now.
writeModules();

/** The files that take longest, by far. Begun late, they would keep one worker busy after the others have ended. */
const longest = [
  "evidence/sim/simulator.long",
  "test/package/package.full",
  "test/http/adapters.full",
  "test/contract/endpoints/sockets-failover.full",
  "test/package/package.long",
  "test/contract/idempotency/engines/runs",
  "test/contract/locks/engines/lock",
  "test/contract/sync/engines/holds",
  "test/docs/snippets.long",
  "test/contract/fake-timers",
  "evidence/sim/simulator",
  "evidence/runtimes/workerd",
  "test/unit/cli/golden",
];

/** Begins with the longest files. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const place = ({ moduleId }: TestSpecification) => {
      const at = longest.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
      return at < 0 ? longest.length : at;
    };
    return sorted.sort((one, other) => place(one) - place(other));
  }
}

/** What takes seconds and shows more of what `npm test` shows: `npm run test:long` runs it. */
export const long = [
  // Through sockets and the SDK what HTTP shows; and each dialect, as doctor sees it.
  "test/contract/endpoints/{sockets,sockets-*,upstash-sdk-contract,dialects}.test.ts",
  "test/contract/command/sockets.test.ts",
  // In real time: an outage, and what other tests have faked.
  "test/contract/fake-timers.test.ts",
  // On servers what SQLite and D1 show.
  "test/inbox/{postgres,mysql}.test.ts",
  // Whether the local endpoints, their processes, the lock server, and the twins of scripts do what Redis does.
  "lock-server/test/commands.test.ts",
  "local/test/rest-protocol/**/*.test.ts",
  "local/test/{rest/forgotten,cli/process}.test.ts",
  "evidence/twins/*.test.ts",
  "evidence/sim/mutants/mutants.test.ts",
  // What is built and run as users do: the examples, the example Worker, and the library in workerd.
  "test/{examples,worker}/*.test.ts",
  "evidence/runtimes/workerd.test.ts",
];

/** What `npm test` and `npm run test:long` have in common. */
export const settings = {
  // Most tests wait for servers and ttls, so that there are more workers than cores.
  maxWorkers: 4,
  // Fewer collections of short-lived objects: a twentieth less CPU.
  execArgv: ["--min-semi-space-size=32", "--max-semi-space-size=64"],
  // Files share a worker's modules and servers: loading them anew took a third of the time.
  isolate: false,
  // What was transformed before is read from node_modules/.experimental-vitest-cache: a tenth of the time.
  experimental: { fsModuleCache: true },
  unstubEnvs: true,
  sequence: { sequencer: LongestFirst },
  // The only limit of what a test waits for.
  testTimeout: 60_000,
  hookTimeout: 60_000,
  expect: { poll: { timeout: beyondTests } },
};

/** Says what to install for skipped tests, and in CI counts for the last line of .ci/run. */
export function reporters(file: string): object {
  const always = ["default", new MissingPrograms()];
  if (!process.env.CI) return { reporters: always };
  return { reporters: [...always, ["json", { outputFile: `node_modules/.cache/${file}` }]] };
}

/** Other packages import the sources of redlock-edge by its names, and an example those of redis-rest-local. */
export const resolve = {
  alias: [
    {
      find: /^redis-rest-local$/,
      replacement: fileURLToPath(new URL("local/src/index.ts", import.meta.url)),
    },
    {
      find: /^redis-rest-local\/memory$/,
      replacement: fileURLToPath(new URL("local/src/memory/index.ts", import.meta.url)),
    },
    { find: /^redlock-edge$/, replacement: fileURLToPath(new URL("src/index.ts", import.meta.url)) },
    {
      find: /^redlock-edge\/([\w/-]+)$/,
      replacement: fileURLToPath(new URL("src/$1/index.ts", import.meta.url)),
    },
  ],
};

export default defineConfig({
  resolve,
  test: {
    ...settings,
    ...reporters("vitest.json"),
    include: ["{test,evidence,local/test,lock-server/test}/**/*.test.ts", "examples/tests/vitest.test.js"],
    exclude: [...configDefaults.exclude, "**/*.{long,full}.test.ts", ...long],
  },
});
