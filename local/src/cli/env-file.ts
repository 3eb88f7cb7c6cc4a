import { chmod, readFile, writeFile } from "node:fs/promises";
import { parseEnv } from "node:util";
import { UsageError } from "./options.ts";

// Files of variables, such as `.env` and wrangler's `.dev.vars`: one KEY="value" per line.

type Variables = readonly (readonly [name: string, value: string])[];

/** A line that sets an endpoint. One of an endpoint that no longer runs would count as one more endpoint. */
const ofEndpoint = /^[^\S\n]*(?:export\s+)?(UPSTASH_REDIS_REST_(?:URL|TOKEN)(?:_\d+)?)[^\S\n]*=.*(?:\n|$)/gm;

/**
 * Sets the variables of endpoints in a file that only its owner may read from then on, because it has tokens. All other lines
 * stay.
 *
 * @throws UsageError when the file has no variables or an endpoint elsewhere, or cannot be written. It is unchanged then
 */
export async function writeVariables(path: string, variables: Variables): Promise<void> {
  const text = await textBefore(path);
  const before = parseEnv(text);
  const refuse = (why: string) => {
    throw new UsageError(`--write-env ${path}: ${why}. It was left as it is; name another file`);
  };
  if (text.trim() !== "" && !/^\s*#/.test(text) && Object.keys(before).length === 0) {
    refuse("it is not a file of variables");
  }
  const own = new Set(variables.map(([, value]) => hostOf(value)));
  for (const [name, url] of Object.entries(before)) {
    if (!/^UPSTASH_REDIS_REST_URL(?:_\d+)?$/.test(name) || !url) continue;
    const host = hostOf(url);
    if (host === undefined || !(isLoopback(host) || own.has(host))) {
      refuse(`${name} points to a host that is not this machine, and would be replaced`);
    }
  }
  const kept = text.replace(ofEndpoint, "").trimEnd();
  const lines = variables.map(([name, value]) => `${name}="${value}"`);
  try {
    await writeFile(path, [...(kept ? [kept] : []), ...lines, ""].join("\n"), { mode: 0o600 });
    await chmod(path, 0o600);
  } catch (error) {
    throw fileError(path, error);
  }
}

/**
 * The token of the local endpoints that an earlier run has written into a file. With it, and the same ports, what has read
 * the file still reaches the endpoints after a restart.
 *
 * @throws UsageError when the file cannot be read
 */
export async function tokenBefore(path: string): Promise<string | undefined> {
  return parseEnv(await textBefore(path)).UPSTASH_REDIS_REST_TOKEN_1 || undefined;
}

/** Whether a host is an address of this machine only. */
export const isLoopback = (host: string): boolean => /^(?:127\.[\d.]+|\[?::1\]?|localhost)$/i.test(host);

const hostOf = (url: string) => (URL.canParse(url) ? new URL(url).hostname : undefined);

/** The text of the file, empty where there is none. */
async function textBefore(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw fileError(path, error);
  }
}

const fileError = (path: string, error: unknown) =>
  new UsageError(`--write-env ${path}: ${(error as Error).message}`);
