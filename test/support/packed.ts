import { type ExecFileSyncOptionsWithStringEncoding, execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { isAlive } from "./is-alive.ts";
import { until } from "./until.ts";

/** A package as `npm pack` makes it. */
export interface Packed {
  /** The tarball's path. */
  readonly tarball: string;
  /** The paths in the tarball, sorted. */
  readonly files: readonly string[];
}

/** The packages of this repository. */
export type Packages = Readonly<Record<"redlockEdge" | "redlockEdgeServer" | "redisRestLocal", Packed>>;

/** An empty project with the packed packages installed. */
export interface Project {
  readonly folder: string;
  /** Where redlock-edge is. */
  readonly installed: string;
  readonly packed: Packages;
  /** Runs a command in the folder, and returns what it printed. */
  run(command: string, ...args: string[]): string;
  remove(): void;
}

/** Piped, so that an error quotes what npm and the build have said. */
const piped: ExecFileSyncOptionsWithStringEncoding = { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] };

// The build of the packages takes seconds, so one run of the tests packs it once. The processes of a run have the same
// parent. The first one that comes packs; the others wait for its file. The time of the last change is in the name,
// because `vitest watch` is one run that lasts.
const cache = resolve("node_modules/.cache/packed");
const own = join(cache, `${process.ppid}-${lastChange()}`);

/** Packs the packages, or returns what another process of this run has packed. */
export async function pack(): Promise<Packages> {
  const done = join(own, "packed.json");
  mkdirSync(cache, { recursive: true });
  if (isFirst()) {
    removeOthers();
    try {
      const packed = packInto(own);
      // Renamed, so that nobody reads half of it.
      writeFileSync(`${done}.part`, JSON.stringify(packed));
      renameSync(`${done}.part`, done);
    } catch (error) {
      rmSync(own, { recursive: true, force: true });
      throw error;
    }
  }
  await until(() => existsSync(done) || !existsSync(own), "another process to pack");
  if (!existsSync(done)) throw new Error("npm pack has failed in another process");
  return JSON.parse(readFileSync(done, "utf8")) as Packages;
}

/** Packs the packages and installs them into a new project outside the repository. */
export async function installPacked(): Promise<Project> {
  const packed = await pack();
  const folder = mkdtempSync(join(tmpdir(), "redlock-edge-package-"));
  const run = (command: string, ...args: string[]): string =>
    execFileSync(command, args, { cwd: folder, ...piped });
  const user = { name: "user", private: true, type: "module" };
  writeFileSync(join(folder, "package.json"), JSON.stringify(user));
  const tarballs = Object.values(packed).map(({ tarball }) => tarball);
  run("npm", "install", "--offline", "--no-audit", "--no-fund", ...tarballs);
  return {
    folder,
    installed: join(folder, "node_modules", "redlock-edge"),
    packed,
    run,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** When the sources were last changed, in ms since 1970. */
function lastChange(): number {
  const sources = ["src", "lock-server/src", "local/src"].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name)),
  );
  return Math.floor(Math.max(...sources.map((name) => statSync(name).mtimeMs)));
}

/** Whether no other process of this run has begun to pack. */
function isFirst(): boolean {
  try {
    mkdirSync(own);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** Removes what earlier runs, whose process has ended, have packed. */
function removeOthers(): void {
  for (const name of readdirSync(cache)) {
    if (join(cache, name) !== own && !isAlive(Number.parseInt(name, 10))) {
      rmSync(join(cache, name), { recursive: true, force: true });
    }
  }
}

function packInto(destination: string): Packages {
  const packages = [".", "./lock-server", "./local"];
  const printed = execFileSync(
    "npm",
    ["pack", ...packages, "--json", "--pack-destination", destination],
    piped,
  );
  // The build's own output may come first.
  const made = JSON.parse(printed.slice(printed.indexOf("[\n"))) as {
    filename: string;
    files: { path: string }[];
  }[];
  const [redlockEdge, redlockEdgeServer, redisRestLocal] = made.map(({ filename, files }) => ({
    tarball: join(destination, filename),
    files: files.map(({ path }) => path).sort(),
  }));
  if (!redlockEdge || !redlockEdgeServer || !redisRestLocal)
    throw new Error(`npm pack has made ${made.length} packages`);
  return { redlockEdge, redlockEdgeServer, redisRestLocal };
}
