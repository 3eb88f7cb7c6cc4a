import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { project } from "./load.mjs";

/**
 * Installs what the lock file of a folder names, unless that was done: what few people need, the project's own `npm ci` does
 * not bring.
 *
 * @param {string} folder with a package.json and package-lock.json; relative to the project, or absolute
 */
export function npmCi(folder) {
  const cwd = resolve(project, folder);
  const lock = readFileSync(join(cwd, "package-lock.json"), "utf8");
  const done = join(cwd, "node_modules", ".installed");
  if (existsSync(done) && readFileSync(done, "utf8") === lock) return;
  rmSync(done, { force: true });
  console.error(`installing the packages of ${folder}`);
  execFileSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd, stdio: ["ignore", "ignore", "inherit"] });
  writeFileSync(done, lock);
}
