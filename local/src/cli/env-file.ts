import { execFile } from "node:child_process";
import { chmod, readFile, stat, writeFile } from "node:fs/promises";
import { BlockList, isIP } from "node:net";
import { basename, dirname } from "node:path";
import { parseEnv } from "node:util";
import { isLoopback } from "../rest/http/faults-api.ts";
import { UsageError } from "./line.ts";

// Files of variables, such as `.env` and wrangler's `.dev.vars`: one KEY="value" per line.

/** A variable with its line or, where a quote is open at the end of one, its lines. */
const assignment =
  /^[^\S\n]*(export[^\S\n]+)?([A-Za-z_]\w*)[^\S\n]*=[^\S\n]*(?:(["'`])((?:\\\3|(?!\3)[\s\S])*)\3[^\S\n]*(?:#.*)?|(.*))$/gm;

const ofEndpoint = /^UPSTASH_REDIS_REST_(?:URL|TOKEN)(?:_\d+)?$/;

/** Each variable of a file's text with its value, even if it is set more than once. */
function pairsOf(text: string): (readonly [name: string, value: string])[] {
  return [...text.matchAll(assignment)].map(
    ([, , name = "", , quoted, plain = ""]) =>
      [name, quoted ?? plain.replace(/(?:^|\s+)#.*$/, "").trim()] as const,
  );
}

/**
 * The text of a file with these variables, and all that it had but the variables that set an endpoint: one of an
 * endpoint that no longer runs would count as one more endpoint.
 */
export function withVariables(text: string, variables: readonly (readonly [string, string])[]): string {
  const old = [...text.matchAll(assignment)].filter(([, , name = ""]) => ofEndpoint.test(name));
  let [kept, end] = ["", 0];
  for (const { index, 0: found } of old) {
    kept += text.slice(end, index);
    end = index + found.length + /^\r?\n?/.exec(text.slice(index + found.length))![0].length;
  }
  kept = (kept + text.slice(end)).trimEnd();
  // A shell that reads the file passes on what is exported only.
  const prefix = old.length > 0 && old.every(([, exported]) => exported) ? "export " : "";
  const lines = variables.map(([name, value]) => `${prefix}${name}="${value}"`);
  const newline = text.includes("\r\n") ? "\r\n" : "\n";
  return [...(kept === "" ? [] : [kept]), ...lines, ""].join(newline);
}

/** The number of the first line that no file of variables has; undefined: there is none. */
function foreignLine(text: string): number | undefined {
  const rest = text.replace(assignment, (found) => found.replaceAll(/[^\n]/g, ""));
  const index = rest.split("\n").findIndex((line) => !/^\s*(?:#|$)/.test(line));
  return index < 0 ? undefined : index + 1;
}

// Loopback, and addresses that only a private network has.
const nearby = new BlockList();
for (const [net, bits] of [
  ["127.0.0.0", 8],
  ["10.0.0.0", 8],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
] as const) {
  nearby.addSubnet(net, bits);
}
nearby.addAddress("::1", "ipv6");
nearby.addSubnet("fc00::", 7, "ipv6");

/** The host of a URL, undefined where it has none. */
const hostOf = (url: string) =>
  URL.canParse(url) ? new URL(url).hostname.replace(/^\[|\]$/g, "") : undefined;

function isNearby(host: string): boolean {
  const version = isIP(host);
  return version === 0 ? host === "localhost" : nearby.check(host, `ipv${version as 4 | 6}`);
}

/** The first variable whose endpoint this command cannot have started: who replaces it loses its token. */
function elsewhere(text: string, variables: readonly (readonly [string, string])[]): string | undefined {
  const own = new Set(variables.map(([, value]) => hostOf(value)));
  const found = pairsOf(text).find(([name, url]) => {
    if (url === "" || !ofEndpoint.test(name) || !name.includes("_URL")) return false;
    const host = hostOf(url);
    return host === undefined || !(isNearby(host) || own.has(host));
  });
  return found?.[0];
}

/**
 * Sets the variables in a file that only its owner may read from then on: it has tokens.
 *
 * @throws UsageError when the file has anything but variables or an endpoint elsewhere, or cannot be written; it is
 *   unchanged then
 */
export async function writeVariables(
  path: string,
  variables: readonly (readonly [string, string])[],
): Promise<void> {
  try {
    const text = await textBefore(path);
    const name = elsewhere(text ?? "", variables);
    if (name !== undefined) {
      throw refusal(path, `${name} points to a host that is not this machine, and would be replaced`);
    }
    // Before the tokens are in it; `mode` counts for a new file only.
    if (text !== undefined) await chmod(path, 0o600);
    await writeFile(path, withVariables(text ?? "", variables), { mode: 0o600 });
  } catch (error) {
    throw fileError(path, error);
  }
}

/**
 * The token of the local endpoints that an earlier run has written into a file. With it, and the same ports, what has read
 * the file still reaches the endpoints after a restart.
 *
 * @throws UsageError when the file has anything but variables, or cannot be read
 */
export async function tokenBefore(path: string): Promise<string | undefined> {
  const text = await textBefore(path).catch((error) => {
    throw fileError(path, error);
  });
  const { UPSTASH_REDIS_REST_URL_1: url = "", UPSTASH_REDIS_REST_TOKEN_1: token } = parseEnv(text ?? "");
  const [, host] = /^http:\/\/(\[.*?\]|[^:/]*)/.exec(url) ?? [];
  // That of a database elsewhere is not for endpoints on this machine.
  return host !== undefined && isLoopback(host) ? token || undefined : undefined;
}

const refusal = (path: string, why: string) =>
  new UsageError(`--write-env ${path}: ${why}. It was left as it is; name another file`);

/** The text of the file, undefined where there is none. */
async function textBefore(path: string): Promise<string | undefined> {
  try {
    // Reading a pipe would wait for its writer.
    const found = await stat(path);
    if (!found.isFile() && !found.isDirectory()) throw refusal(path, "it is not a regular file");
    // Its owner could make it writable, as root can write it: it is meant to stay as it is.
    if (found.isFile() && (found.mode & 0o200) === 0) throw refusal(path, "it is read-only");
    const bytes = await readFile(path);
    const text = bytes.toString("utf8");
    if (!bytes.equals(Buffer.from(text))) throw refusal(path, "it is not UTF-8 text");
    const line = foreignLine(text);
    if (line !== undefined) {
      throw refusal(
        path,
        `line ${line} is neither NAME=value nor a comment, so it is not a file of variables`,
      );
    }
    return text;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

const denied = "this user may not: change its permissions, or name another file";

const remedies: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file, or no such folder",
  EISDIR: "it is a folder: name a file in it",
  ENOTDIR: "a part of the path is not a folder",
  EACCES: denied,
  EPERM: denied,
  EROFS: "it is on a disk that can only be read: name another file",
};

function fileError(path: string, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) return error;
  return new UsageError(`--write-env ${path}: ${remedies[code] ?? (error as Error).message}`);
}

/** Whether git would take a file into a commit. False where there is no repository, or no git. */
export function isUnignored(path: string): Promise<boolean> {
  const words = ["check-ignore", "--quiet", "--", basename(path)];
  return new Promise((resolve) => {
    // Its exit codes: 0 ignored, 1 not ignored, 128 no repository.
    execFile("git", words, { cwd: dirname(path) }, (error) => resolve(error?.code === 1));
  });
}
