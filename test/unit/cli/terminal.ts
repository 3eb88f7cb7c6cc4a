import process from "node:process";
import type { LocalEndpoints } from "../../../local/src/index.ts";
import { runCommand } from "../../../src/cli/run.ts";

// A terminal in which command lines are run, and what stands there afterwards.

/** What a command line finds. */
export interface Setting {
  readonly env?: Record<string, string>;
  /** The person's answer; default: there is nobody to ask. */
  readonly answer?: string;
  /** Default: there is no terminal. */
  readonly width?: number;
  /** Where packages are looked for. Default: the project's folder. */
  readonly folder?: string;
}

/** Runs a command line; a word in quotes is one argument. */
export async function run(local: LocalEndpoints | undefined, line: string, setting: Setting = {}) {
  const { env = local?.env() ?? {}, answer, width = Infinity, folder = process.cwd() } = setting;
  const lines: string[] = [];
  const shown: string[] = [];
  const args = (line.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', ""));
  const code = await runCommand(args, {
    out(text) {
      lines.push(text);
      shown.push(text);
    },
    warn: (text) => shown.push(`! ${text}`),
    width,
    env,
    folder,
    version: async () => "1.2.3",
    async ask(question) {
      shown.push(`? ${question}${answer}`);
      return answer!;
    },
    ...(answer === undefined && { ask: undefined }),
  });
  return { code, lines, shown };
}

/** What changes with every run: places of text, and what stands there instead. */
const passing: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<date>"],
  [/\b\d+(?:\.\d+)? (?:ms|s)\b|\b\d+ (?:min|h|d) \d+ (?:s|min|h)\b/g, "<time>"],
  [/\b[0-9a-f]{12}\b/g, "<holder>"],
  [/\b1\d{12}\b/g, "<fence>"],
  [/"(remaining|age|fenceAge|retryAfter|roundTrip|clock|commands)":-?[\d.]+/g, '"$1":<number>'],
];

/** Text without what changes with every run. Columns are no wider than they must be. */
export function lasting(text: string, local: LocalEndpoints): string {
  let rest = text;
  for (const [index, { url }] of local.endpoints.entries()) {
    rest = rest.replaceAll(new URL(url).host, `e${index + 1}`);
  }
  for (const [pattern, instead] of passing) rest = rest.replaceAll(pattern, instead);
  return rest.replaceAll(/(\S) {2,}/g, "$1  ");
}
