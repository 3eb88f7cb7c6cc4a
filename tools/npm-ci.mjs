import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import process from "node:process";
import { project } from "./load.mjs";

/**
 * Installs what the lock file of a folder names, unless that was done: what few people need, the project's own `npm ci` does
 * not bring. Tests run in several processes, so the others wait for the one that installs.
 *
 * @param {string} folder with a package.json and package-lock.json; relative to the project, or absolute
 */
export function npmCi(folder) {
  const cwd = resolve(project, folder);
  const lock = readFileSync(join(cwd, "package-lock.json"), "utf8");
  const done = join(cwd, "node_modules", ".installed");
  const isDone = () => existsSync(done) && readFileSync(done, "utf8") === lock;
  if (isDone()) return;
  oneAtATime(relative(project, cwd).replace(/\W+/g, "-"), () => {
    if (isDone()) return;
    rmSync(done, { force: true });
    console.error(`installing the packages of ${folder}`);
    execFileSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd, stdio: ["ignore", "ignore", "inherit"] });
    writeFileSync(done, lock);
  });
}

/** Runs `act` while no other process of this machine does so under this name. Blocks until then. */
function oneAtATime(name, act) {
  const cache = join(project, "node_modules/.cache");
  mkdirSync(cache, { recursive: true });
  const owner = join(cache, `installing-${name}`);
  while (!isOwned(owner)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
  try {
    act();
  } finally {
    rmSync(owner, { force: true });
  }
}

/** Whether this process owns the file now. One whose owner has died is removed. */
function isOwned(owner) {
  try {
    writeFileSync(owner, `${process.pid}\n`, { flag: "wx" });
    return true;
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  }
  try {
    // Without a line feed it is not written yet.
    const text = readFileSync(owner, "utf8");
    if (text.endsWith("\n")) process.kill(Number(text), 0);
  } catch (error) {
    // Nobody has it any more: its process has ended, or has removed it just now.
    if (error.code === "ESRCH") rmSync(owner, { force: true });
  }
  return false;
}
