import { execFileSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL(".", import.meta.url));

/** Installs the packages of this folder's lock file, unless they are there. `npm ci` of the project does not bring them. */
export function installPeers() {
  const wanted = statSync(join(folder, "package-lock.json")).mtimeMs;
  const installed = statSync(join(folder, "node_modules/.package-lock.json"), { throwIfNoEntry: false });
  if (installed && installed.mtimeMs >= wanted) return;
  execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: folder,
    stdio: "inherit",
  });
}

/** A package's name with the version that is measured. */
export function versioned(name) {
  const { devDependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return `${name} ${devDependencies[name]}`;
}
