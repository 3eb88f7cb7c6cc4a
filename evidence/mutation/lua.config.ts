import { defineConfig } from "vitest/config";
import { resolve } from "../../vitest.config.ts";

/** What Vite puts in the place of a script's module: the text that `lua.test.mjs` sets for each mutant. */
const scripts = {
  name: "lua-scripts",
  enforce: "pre" as const,
  transform(code: string, id: string) {
    const path = /[\\/](src[\\/].*\.lua)\.ts$/.exec(id)?.[1]?.replaceAll("\\", "/");
    if (path === undefined) return null;
    const script = `globalThis.luaScripts.get(${JSON.stringify(path)})`;
    return code.replace(
      /source: `[^`]*`,\n {2}sha: \{[^}]*\}/,
      () => `get source() { return ${script}.source; }, get sha() { return ${script}.sha; }`,
    );
  },
};

/** The tests of `node evidence/mutation.mjs --lua`: see lua.mjs. */
export default defineConfig({
  resolve,
  plugins: [scripts],
  test: {
    include: ["evidence/mutation/lua.test.mjs"],
    env: { SETS: "few" },
    isolate: false,
    maxWorkers: 1,
    testTimeout: 10_000,
  },
});
