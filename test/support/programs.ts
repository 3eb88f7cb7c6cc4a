import { constants } from "node:fs";
import { access, readdir } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import process from "node:process";
import { findRedisServer } from "../../local/src/rest/redis/process.ts";

// Programs that some tests need beside Node. Without one its tests are skipped, and `missing-programs.ts` says so at the
// end of a run. With CI=true they fail, except for those that OPTIONAL_PROGRAMS names, as "Chromium,PostgreSQL". With
// HIDE_OPTIONAL_PROGRAMS=true, a run is as on a machine without these programs.

/** How to install a program that is missing. */
interface Install {
  readonly name: string;
  readonly apt: string;
  readonly brew: string;
}

/** The programs that are missing on this machine. */
export const missingPrograms: Install[] = [];

/** The path of `redis-server`, if there is one. */
export const redisServer: string | undefined = note(findRedisServer(), {
  name: "redis-server",
  apt: "redis-server",
  brew: "redis",
});

/** The path of Chromium, if there is one. */
export const chromiumPath: string | undefined = note(
  await find(["chromium", "chromium-browser", "google-chrome"], ["/usr/bin"]),
  { name: "Chromium", apt: "chromium", brew: "chromium" },
);

/** The folder of PostgreSQL's programs, if it is installed. */
export const postgresPrograms: string | undefined = note(await findPostgres(), {
  name: "PostgreSQL",
  apt: "postgresql",
  brew: "postgresql",
});

/** The path of MariaDB's server, if it is installed. */
export const mariadbServer: string | undefined = note(await find(["mariadbd"], ["/usr/sbin"]), {
  name: "MariaDB",
  apt: "mariadb-server",
  brew: "mariadb",
});

/**
 * What a test file that needs a program calls.
 *
 * @throws Error in CI where it is missing and not optional: a run that skips tests there would look as if they had passed
 */
export function requireInCi(program: string | undefined, name: string): void {
  if (program === undefined && process.env.CI === "true" && !isOptional(name)) {
    throw new Error(`${name} is not installed, and CI requires it`);
  }
}

function note(path: string | undefined, install: Install): string | undefined {
  const isHidden = process.env.HIDE_OPTIONAL_PROGRAMS === "true" && isOptional(install.name);
  if (path !== undefined && !isHidden) return path;
  missingPrograms.push(install);
  return undefined;
}

function isOptional(name: string): boolean {
  return (process.env.OPTIONAL_PROGRAMS ?? "").split(",").includes(name);
}

/** On PATH, or where Debian installs it. */
async function findPostgres(): Promise<string | undefined> {
  const debian = "/usr/lib/postgresql";
  const versions = await readdir(debian).catch(() => []);
  const folders = versions.sort((a, b) => Number(b) - Number(a)).map((name) => join(debian, name, "bin"));
  const initdb = await find(["initdb"], folders);
  return initdb && dirname(initdb);
}

/** The path of the first of these programs that is on PATH or in `folders`. */
async function find(names: readonly string[], folders: readonly string[]): Promise<string | undefined> {
  for (const folder of [...(process.env.PATH ?? "").split(delimiter), ...folders]) {
    for (const name of names) {
      const path = join(folder, name);
      const [found] = await Promise.allSettled([access(path, constants.X_OK)]);
      if (found.status === "fulfilled") return path;
    }
  }
  return undefined;
}
