import process from "node:process";
import { configDefaults, defineConfig } from "vitest/config";

/** What `npm test` and `npm run test:long` have in common. */
export const settings = {
  // Most tests wait for servers and ttls, so that there are more workers than cores.
  maxWorkers: 4,
  // Files share a worker's modules and servers: loading them anew took a third of the time.
  isolate: false,
  unstubEnvs: true,
  testTimeout: 30_000,
  hookTimeout: 60_000,
};

/** The counts for the last line of .ci/run. */
export function reporters(file: string): object {
  if (!process.env.CI) return {};
  return { reporters: ["default", ["json", { outputFile: `node_modules/.cache/${file}` }]] };
}

export default defineConfig({
  test: {
    ...settings,
    ...reporters("vitest.json"),
    include: ["test/**/*.test.ts"],
    // Comparisons of two engines on random commands, which concern only changes of the embedded engine and of scripts; and
    // the locks' contract once more, through the SDK.
    exclude: [
      ...configDefaults.exclude,
      "test/**/*.long.test.ts",
      "test/robustness/{differential,twins}/**",
      "test/contract/endpoints/upstash-sdk-contract.test.ts",
    ],
  },
});
