import type { Check } from "../../check.ts";
import { listOf, requireForm, requireForms } from "../option-checks.ts";

/** A text of this form; default any that is not empty. */
export function text(form?: RegExp): Check {
  return (option, value) => requireForm(option, value, form);
}

/** One text of this form, or several. */
export function texts(form: RegExp): Check {
  return (option, value) => requireForms(option, value, form);
}

/** One key or several. The message does not repeat any part of it. */
export function keys(isSecret: boolean): Check {
  const form = isSecret ? "a string or a Uint8Array" : "a Uint8Array, as decodePublicKey returns it,";
  return (option, value: unknown) => {
    for (const key of listOf(value)) {
      if (((isSecret && typeof key === "string") || key instanceof Uint8Array) && key.length > 0) continue;
      throw new TypeError(`${option} must be ${form} that is not empty (is the variable set?)`);
    }
  };
}
