import { checkNames, checkType } from "../../check.ts";
import { listOf, requireForm, requireForms } from "../option-checks.ts";

/** Throws a `TypeError` that names the option unless its value is right. */
export type Check = (option: string, value: unknown) => void;

/**
 * Checks options by a table with a check for each. Options that it does not have are refused.
 *
 * @param required the options that must be given; of the others, one that is undefined is absent
 * @throws {TypeError} an option is unknown, missing or not of its form
 */
export function checkAll<Options extends object>(
  call: string,
  options: Options,
  checks: Readonly<Record<keyof Options & string, Check>>,
  required: readonly string[],
): void {
  checkNames(call, options, checks);
  for (const [option, check] of Object.entries<Check>(checks)) {
    const value = options[option as keyof Options];
    if (value !== undefined || required.includes(option)) check(option, value);
  }
}

/** A text of this form; default any that is not empty. */
export function text(form?: RegExp): Check {
  return (option, value) => requireForm(option, value, form);
}

/** One text of this form, or several. */
export function texts(form: RegExp): Check {
  return (option, value) => requireForms(option, value, form);
}

/** A value of this type. */
export function typed(type: string): Check {
  return (option, value) => checkType(option, value, type);
}

/** What is checked where it is used. */
export const later: Check = () => undefined;

/** One key or several. The message does not repeat any part of it. */
export function keys(isSecret: boolean): Check {
  const form = isSecret ? "a string or a Uint8Array" : "a Uint8Array, as decodePublicKey returns it,";
  return (option, value) => {
    for (const key of listOf(value)) {
      if (((isSecret && typeof key === "string") || key instanceof Uint8Array) && key.length > 0) continue;
      throw new TypeError(`${option} must be ${form} that is not empty (is the variable set?)`);
    }
  };
}
