import { readFile } from "node:fs/promises";
import { parseEnv } from "node:util";
import { UsageError } from "./environment.ts";

const denied = "this user may not: change its permissions, or name another file";

const remedies: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file, or no such folder",
  EISDIR: "it is a folder: name a file in it",
  ENOTDIR: "a part of the path is not a folder",
  EACCES: denied,
  EPERM: denied,
};

/**
 * Reads the variables of a file such as `.env` or wrangler's `.dev.vars`.
 *
 * @throws UsageError when it cannot be read
 */
export async function readVariables(path: string): Promise<Readonly<Record<string, string | undefined>>> {
  try {
    return parseEnv(await readFile(path, "utf8"));
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    throw new UsageError(`--read-env ${path}: ${remedies[code] ?? message}`);
  }
}
