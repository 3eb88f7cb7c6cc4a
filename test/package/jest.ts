import { execFile } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { onDemand } from "../support/on-demand.ts";

/** What a user tests in Jest. */
const program = `
  import { endpointsFromEnv, LockHeldError, Redlock } from "redlock-edge";
  import { idempotentExpress } from "redlock-edge/node";
  import { Semaphore } from "redlock-edge/sync";
  import { LockServer } from "redlock-edge-server";
  import { start } from "redis-rest-local";
  import { memoryEndpoint } from "redis-rest-local/memory";

  declare const test: (name: string, run: () => Promise<void>) => void;
  declare const expect: (value: unknown) => { toBe(other: unknown): void };

  test("locks in the process", async () => {
    const redlock = new Redlock({ endpoints: [memoryEndpoint()] });
    const { slot } = await new Semaphore(redlock, "s", { limit: 1 }).acquire();
    expect(slot).toBe(0);
    await redlock.acquire("a");
    const error: unknown = await redlock.acquire("a", { wait: 0 }).catch((reason) => reason);
    expect(error instanceof LockHeldError).toBe(true);
    expect([typeof idempotentExpress, typeof LockServer].join()).toBe("function,function");
  });
  test("locks over HTTP", async () => {
    const local = await start({ count: 1, engine: "embedded" });
    const redlock = new Redlock({ endpoints: endpointsFromEnv(local.env()) });
    expect(await redlock.using("b", () => "used")).toBe("used");
    await local.close();
  });`;

/** The transformers, and what each needs to make CommonJS of TypeScript and of ES modules. */
const transformers = {
  "babel-jest": (need: NodeJS.Require) => {
    const [types, modules] = ["@babel/preset-typescript", "@babel/plugin-transform-modules-commonjs"];
    return { presets: [need.resolve(types!)], plugins: [need.resolve(modules!)] };
  },
  "ts-jest": () => ({
    tsconfig: { module: "commonjs", target: "es2022", strict: true, skipLibCheck: true, allowJs: true },
  }),
  "@swc/jest": () => ({}),
};

/**
 * Runs the tests in CommonJS, and returns what Jest prints.
 *
 * @param folder where the packages are installed
 * @param settings what the user sets besides `transform`
 */
export async function jest(
  folder: string,
  transformer: keyof typeof transformers,
  settings: object,
): Promise<string> {
  const own = join(folder, "jest");
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, "package.json"), JSON.stringify({ name: "user", private: true }));
  writeFileSync(join(own, "case.test.ts"), program);
  for (const name of ["bookkeeper.js", "jest.test.js"]) cpSync(join("examples/tests", name), join(own, name));
  const need = createRequire(join(onDemand(), "from-here.js"));
  const transform = { "\\.[jt]s$": [need.resolve(transformer), transformers[transformer](need)] };
  const config = join(own, "jest.config.json");
  writeFileSync(config, JSON.stringify({ ...settings, transform, cache: false }));
  const args = [join(onDemand(), "jest/bin/jest.js"), "--config", config, "--runInBand"];
  // It ends with 1 if a test fails.
  const { stderr } = await promisify(execFile)(process.execPath, args, { cwd: own }).catch((error) => error);
  return stderr;
}
