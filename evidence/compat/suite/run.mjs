import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { startVitest } from "vitest/node";

const here = fileURLToPath(new URL(".", import.meta.url));

/**
 * Runs the own tests of @upstash/redis.
 *
 * @param {string} checkout of github.com/upstash/redis-js
 * @param {{ endpoints: readonly { url: string, token: string }[], only?: string }} options one endpoint for each worker,
 *   and letters of the files' names
 * @returns {Promise<{ package: string, name: string, error?: string }[]>}
 */
export async function runSuite(checkout, { endpoints, only }) {
  const root = ["packages/redis", "."]
    .map((each) => join(checkout, each))
    .find((each) => existsSync(join(each, "pkg")));
  if (root === undefined)
    throw new Error(`${checkout} has no folder packages/redis/pkg: it is no checkout of redis-js`);
  const folder = await mkdtemp(join(tmpdir(), "compat-suite-"));
  const outputFile = join(folder, "suite.json");
  process.env.COMPAT_ENDPOINTS = JSON.stringify(endpoints.map(({ url, token }) => ({ url, token })));
  process.env.COMPAT_TURN = join(folder, "turn");
  const code = process.exitCode;
  const vitest = await startVitest(
    "test",
    only === undefined ? [] : [only],
    {
      root,
      config: false,
      watch: false,
      include: ["pkg/**/*.test.ts"],
      setupFiles: [join(here, "setup.mjs")],
      maxWorkers: endpoints.length,
      testTimeout: 20_000,
      hookTimeout: 20_000,
      reporters: ["json"],
      outputFile,
    },
    {
      resolve: {
        alias: {
          "bun:test": join(here, "bun-test.mjs"),
          bun: join(here, "bun.mjs"),
          uncrypto: join(here, "../node_modules/uncrypto/dist/crypto.node.mjs"),
        },
      },
      server: { fs: { strict: false } },
    },
  );
  await vitest.close();
  // That tests failed is not yet a failure of this run.
  process.exitCode = code;
  const { testResults } = JSON.parse(await readFile(outputFile, "utf8"));
  await rm(folder, { recursive: true });
  return testResults.flatMap((file) => resultsOf(relative(join(root, "pkg"), file.name), file));
}

function resultsOf(file, { assertionResults, message }) {
  if (assertionResults.length === 0) return [{ package: "@upstash/redis", name: file, error: message }];
  return assertionResults
    .filter(({ status }) => status === "passed" || status === "failed")
    .map(({ fullName, status, failureMessages }) => ({
      package: "@upstash/redis",
      name: `${file}: ${fullName}`,
      ...(status === "failed" && { error: failureMessages.join("\n") }),
    }));
}
