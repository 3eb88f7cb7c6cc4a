// Installs the packages of this folder's lock file, unless they are there: `npm ci` of the project does not bring them. They
// go into node_modules/.cache, where nothing that looks through the project's files meets them.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { project } from "../../scripts/load.mjs";

const own = fileURLToPath(new URL(".", import.meta.url));
const lock = readFileSync(join(own, "package-lock.json"), "utf8");
const version = createHash("sha256").update(lock).digest("hex").slice(0, 12);

/** The folder in which they are installed. */
export const folder = join(project, "node_modules/.cache/redlock-edge-peers", version);

if (!existsSync(join(folder, "node_modules/.package-lock.json"))) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of ["package.json", "package-lock.json"]) copyFileSync(join(own, name), join(folder, name));
  execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: folder,
    stdio: "inherit",
  });
}
copyFileSync(join(own, "packages.mjs"), join(folder, "packages.mjs"));

/** Their exports, as packages.mjs names them. */
export const peers = await import(pathToFileURL(join(folder, "packages.mjs")).href);

/** A package's name with the version that is installed. */
export function versioned(name) {
  const { version: number } = JSON.parse(
    readFileSync(join(folder, "node_modules", name, "package.json"), "utf8"),
  );
  return `${name} ${number.replace(/^v/, "")}`;
}
