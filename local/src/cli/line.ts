import { type ParseArgsConfig, parseArgs } from "node:util";
import { hintFor } from "../../../lock-server/src/check.ts";
import { checkDialect, type Dialect } from "../engine/dialect.ts";

/** A command line that is not valid. The message is one line. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

type Options = NonNullable<ParseArgsConfig["options"]>;

/** The values of a parsed command line. */
export type Values<Known extends Options> = ReturnType<
  typeof parseArgs<{ options: Known; strict: true }>
>["values"];

/** @throws UsageError when the line does not fit the options */
export function parseLine<const Known extends Options>(
  args: readonly string[],
  options: Known,
): Values<Known> {
  try {
    return parseArgs({ args: [...args], options, strict: true }).values;
  } catch (error) {
    // Node adds a long explanation; its first sentence is enough.
    const message = (error as Error).message.split(/\.\s|\n/)[0]!.replace(/\.$/, "");
    const unknown = /^Unknown option '--(.*)'$/.exec(message)?.[1];
    const flags = Object.keys(options).map((name) => `--${name}`);
    throw new UsageError(unknown === undefined ? message : `${message}; ${hintFor(`--${unknown}`, flags)}`);
  }
}

/** The value of `--dialect`. */
export function dialectOption(value: string | undefined): Dialect | undefined {
  try {
    return checkDialect(value as Dialect | undefined);
  } catch (error) {
    throw new UsageError(`--${(error as Error).message}`);
  }
}

export function integer(option: string, value: string): number {
  if (!/^\d+$/.test(value)) throw new UsageError(`${option} takes a whole number, not '${value}'`);
  return Number(value);
}
