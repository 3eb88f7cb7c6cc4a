import { type ParseArgsConfig, parseArgs } from "node:util";
import { nearest } from "../../../src/check/check.ts";

/** A command line that is not valid. The message is one line. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

const text = (value: string, about: string) => ({ type: "string", value, about }) as const;
const texts = (value: string, about: string) => ({ ...text(value, about), multiple: true }) as const;
const flag = (about: string) => ({ type: "boolean", value: "", about }) as const;

/** The options, as `parseArgs` takes them, and as `--help` says them. */
export const commandOptions = {
  count: text("<n>", "how many endpoints (3)"),
  engine: text(
    "<name>",
    "auto, redis (a redis-server process each) or embedded: only what redlock-edge sends (auto)",
  ),
  dialect: text("<name>", "the commands that they have: upstash, redis-8.4 or redis (upstash)"),
  redis: texts("<url>", "a running Redis instead, once per endpoint: redis://host:port"),
  host: text("<address>", "address to listen on (127.0.0.1)"),
  port: text("<n>", "port of the first endpoint, the others count up (free ports)"),
  token: text("<token>", "token for all endpoints (random)"),
  "write-env": text(
    "<file>",
    "write the variables there as well, e.g. .dev.vars; its owner only can read it",
  ),
  log: flag("print every command and what it would be billed"),
  down: texts("<n>", "endpoint n breaks every connection; the page has other faults"),
  "page-port": text("<n>", "port of the page that shows the endpoints (a free port)"),
  "no-page": flag("without that page"),
  help: { ...flag("this text"), short: "h" },
  version: { ...flag("the version"), short: "v" },
} as const satisfies ParseArgsConfig["options"];

/** The text of `--help`. */
export const help = `Usage: redis-rest-local [options]

Starts independent local endpoints that speak Upstash's REST protocol, and prints the variables that name them.
They run until Ctrl-C.

  npx redis-rest-local --count 3 --write-env .dev.vars

${Object.entries(commandOptions)
  .map(([name, { value, about }]) => `  ${`--${name} ${value}`.padEnd(20)} ${about}`)
  .join("\n")}`;

/** The values of a command line. */
export type Line = ReturnType<typeof parseArgs<{ options: typeof commandOptions; strict: true }>>["values"];

/** @throws UsageError when the line does not fit the options */
export function parseLine(args: readonly string[]): Line {
  try {
    return parseArgs({ args: [...args], options: commandOptions, strict: true }).values;
  } catch (error) {
    // Node adds a long explanation; its first sentence is enough.
    const message = (error as Error).message.split(/\.\s|\n/)[0]!.replace(/\.$/, "");
    const [, unknown] = /^Unknown option '--(.*)'$/.exec(message) ?? [];
    const names = Object.keys(commandOptions);
    const meant = unknown && nearest(unknown, names);
    const hint = meant ? `did you mean --${meant}?` : `there are --${names.join(", --")}`;
    throw new UsageError(unknown === undefined ? message : `${message}; ${hint}`);
  }
}

/** @throws UsageError when the value is no whole number, or a larger one than `most` */
export function integer(option: string, value: string, most = Number.MAX_SAFE_INTEGER): number {
  if (/^\d+$/.test(value) && Number(value) <= most) return Number(value);
  throw new UsageError(`${option} takes a whole number up to ${most}, not '${value}'`);
}
