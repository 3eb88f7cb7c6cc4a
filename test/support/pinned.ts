import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

/**
 * Installs a runtime of evidence/runtimes/matrix/runtimes.json, and returns its command: `npm ci` need not bring 700 MB. Each
 * has a folder of its own, because the versions of Node have the same name.
 */
export function pinnedRuntime(name: string, version: string): string {
  const folder = resolve("node_modules/.cache/runtimes", `${name}-${version}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ dependencies: { [name]: version } }));
  execFileSync("npm", ["install", "--no-audit", "--no-fund"], { cwd: folder, stdio: "ignore" });
  return join(folder, "node_modules/.bin", name);
}
