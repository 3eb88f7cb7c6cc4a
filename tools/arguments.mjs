// Options of the scripts: their usage is shown for --help, and for what they do not understand.
import process from "node:process";
import { parseArgs } from "node:util";

/**
 * Reads the options of this process. Ends it for `--help`, and with code 1 for an option that does not exist.
 *
 * @param {import("node:util").ParseArgsConfig["options"]} options
 * @param {string} usage
 * @returns {any} the values
 */
export function readArguments(options, usage) {
  let values;
  try {
    ({ values } = parseArgs({ options: { ...options, help: { type: "boolean", short: "h" } } }));
  } catch (error) {
    refuse(error.message, usage);
  }
  if (!values.help) return values;
  console.log(`usage:\n  ${usage}`);
  return process.exit(0);
}

/**
 * Ends this process because of an option that it cannot follow.
 *
 * @param {string} problem
 * @param {string} usage
 * @returns {never}
 */
export function refuse(problem, usage) {
  console.error(`${problem}\nusage:\n  ${usage}`);
  return process.exit(1);
}
