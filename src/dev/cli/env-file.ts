import { chmod, readFile, writeFile } from "node:fs/promises";
import { UsageError } from "./command.ts";

// Files of variables, such as `.env` and wrangler's `.dev.vars`: one KEY="value" per line.

const assignment = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$/;

/** The variables of a file's text. Quotes around a value, comments and `export` are left out. */
export function parseVariables(text: string): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const line of text.split(/\r?\n/)) {
    const [, name, value = ""] = assignment.exec(line) ?? [];
    if (name === undefined) continue;
    const quoted = /^(["'`])(.*?)\1\s*(?:#.*)?$/.exec(value);
    variables[name] = quoted ? quoted[2]! : value.replace(/(?:^|\s+)#.*$/, "");
  }
  return variables;
}

/**
 * Reads the variables of a file.
 *
 * @throws UsageError when it cannot be read
 */
export async function readVariables(path: string): Promise<Record<string, string>> {
  try {
    return parseVariables(await readFile(path, "utf8"));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new UsageError(`--read-env ${path}: ${code === "ENOENT" ? "there is no such file" : code}`);
  }
}

/**
 * The text of a file with these variables, and all its lines but those that set an endpoint: a variable of an endpoint
 * that no longer runs would count as one more endpoint.
 */
export function withVariables(text: string, variables: readonly (readonly [string, string])[]): string {
  const kept = text.split("\n").filter((line) => {
    const name = assignment.exec(line)?.[1];
    return name === undefined || !/^UPSTASH_REDIS_REST_(?:URL|TOKEN)(?:_\d+)?$/.test(name);
  });
  while (kept.at(-1)?.trim() === "") kept.pop();
  return `${[...kept, ...variables.map(([name, value]) => `${name}="${value}"`)].join("\n")}\n`;
}

/** Sets the variables in a file that only its owner may read from then on: it has tokens. */
export async function writeVariables(
  path: string,
  variables: readonly (readonly [string, string])[],
): Promise<void> {
  const text = withVariables((await ifPresent(readFile(path, "utf8"))) ?? "", variables);
  // Before the tokens are in it; `mode` counts for a new file only.
  await ifPresent(chmod(path, 0o600));
  await writeFile(path, text, { mode: 0o600 });
}

async function ifPresent<Value>(action: Promise<Value>): Promise<Value | undefined> {
  try {
    return await action;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
