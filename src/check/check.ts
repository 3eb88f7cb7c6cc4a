import { nameHere } from "./foreign-options.ts";

// Checks of arguments. Messages contain the wrong value, except where it may be a secret.

/** A number within bounds, both included. */
export function checkNumber(name: string, value: number, min: number, max: number): number {
  if (!(checkType(name, value, "number") >= min && value <= max)) {
    throw new RangeError(`${name} must be between ${min} and ${max}, got ${value}`);
  }
  return value;
}

/** An integer within bounds, both included. */
export function checkInteger(name: string, value: number, min: number, max: number): number {
  if (!Number.isInteger(checkNumber(name, value, min, max))) {
    throw new RangeError(`${name} must be an integer, got ${value}`);
  }
  return value;
}

/** A value of the right type. Null and arrays are not objects. */
export function checkType<Value>(name: string, value: Value, type: string): Value {
  if (typeof value === type && value !== null && !Array.isArray(value)) return value;
  throw wrongType(name, value, type === "object" ? "an object" : `a ${type}`);
}

/** Refuses to run a method without its object: the `this` of one that was taken off it is missing. */
export function checkThis(object: unknown, call: string): void {
  if (!object) throw new TypeError(`the method was taken off its object: call it as ${call}`);
}

/** The error for a value of the wrong type: `expected` says what, with an article. */
export function wrongType(name: string, value: unknown, expected: string): TypeError {
  const what = value === undefined ? "is missing: it must be" : "must be";
  return new TypeError(`${name} ${what} ${expected}${value === undefined ? "" : `, got ${show(value)}`}`);
}

/** Text of 1 … `most` characters. The message contains its length only, because it may be a secret. */
export function checkText(name: string, value: string, most = 255): string {
  const { length } = checkType(name, value, "string");
  if (length < 1 || length > most) {
    const allowed = most === Infinity ? "at least 1 character" : `1 … ${most} characters`;
    throw new RangeError(`${name} must have ${allowed}, has ${length}`);
  }
  return checkWellFormed(name, value);
}

/** The name of a lock or of work to do once: text of 1 … `most` characters without a part that stands for a missing value. */
export function checkName(option: string, name: string, most = 1_024): string {
  checkText(option, name, most);
  const missing = missingPartOf(name);
  if (!missing) return name;
  throw new RangeError(
    `${option} ${JSON.stringify(name)} has the part "${missing}": is a variable in it not set?`,
  );
}

/**
 * The part of a name that a template makes of a missing value, as in `order:${undefined}` and `order-${undefined}`. A word such
 * as not-null-check is none.
 */
export function missingPartOf(name: string): string | undefined {
  const form = /(?:^|[:/#|=@,.\s_-])(undefined|null|NaN|Invalid Date|\[object \w+\])(?:$|[:/#|=@,.])/;
  return form.exec(name)?.[1];
}

/**
 * Text that UTF-8 can represent. Half of a surrogate pair arrives in Redis as the replacement character, so two such names
 * would become one: different names would become one there.
 */
export function checkWellFormed(name: string, value: string): string {
  if (!isWellFormed(value)) throw new RangeError(`${name} has half of a surrogate pair in it`);
  return value;
}

/** Whether no half of a surrogate pair is in it. */
export function isWellFormed(value: string): boolean {
  return !/\p{Surrogate}/u.test(value);
}

/** Throws a TypeError or RangeError that names the option where its value cannot be used. */
export type Check = (name: string, value: never) => unknown;

/** What each option of a set must be. The compiler notices when one is missing. */
export type Schema<Options> = { readonly [Name in keyof Options]-?: Check };

/** A number within bounds, both included. */
export function number(min: number, max: number, unit?: "ms"): Check {
  return (name, value) => checkNumber(unit ? `${name} (${unit})` : name, value, min, max);
}

/** An integer within bounds, both included. */
export function integer(min: number, max: number): Check {
  return (name, value) => checkInteger(name, value, min, max);
}

/** By option: the calls of this process have been told once. */
const toldOfSeconds = new Set<string>();

/** Whether somebody has probably written seconds: so short a time, an hour of seconds, or days of them. */
function isInSeconds(ms: number, least: number): boolean {
  return ms > 0 && (ms < least || ms === 3_600 || (ms % 86_400 === 0 && ms <= 31 * 86_400));
}

/**
 * Says on the console, once for each option, that a time was probably meant in seconds. Such a time is taken, because tests need
 * short times. But a lock or a result would be kept for a thousandth of what was meant, and nothing else would tell.
 *
 * @param least a shorter time is probably one in seconds
 */
export function tellOfSeconds(name: string, ms: number, least = 1_000): void {
  if (!isInSeconds(ms, least) || toldOfSeconds.has(name)) return;
  toldOfSeconds.add(name);
  console.warn(`redlock-edge: ${name}: ${ms} is in ms; did you mean ${ms} * 1_000?`);
}

/** An integer of ms within bounds, as {@link tellOfSeconds} looks at it. */
export function milliseconds(min: number, max: number, least?: number): Check {
  return (name, value) => tellOfSeconds(name, checkInteger(`${name} (ms)`, value, min, max), least);
}

/** A value of this type. */
export function typed(type: "boolean" | "function" | "object" | "string"): Check {
  return (name, value) => checkType(name, value, type);
}

/** One of these texts. */
export function oneOf(...texts: readonly string[]): Check {
  return (name, value) => {
    if (texts.includes(value)) return;
    const all = texts.map((text) => JSON.stringify(text));
    throw new RangeError(
      `${name} must be ${all.slice(0, -1).join(", ")} or ${all.at(-1)}, got ${show(value)}`,
    );
  };
}

/** An AbortSignal. */
export const abortSignal: Check = (name, value: unknown) => {
  if (typeof Object(value).removeEventListener === "function") return;
  throw wrongType(name, value, "an AbortSignal: controller.signal");
};

/** An option that its user checks. */
export const later: Check = () => undefined;

/** What {@link checkOptions} knows beside the schema. */
export interface OptionHints {
  /** The options that must be given. Default: none. */
  readonly required?: readonly string[];
  /** The option that is meant where somebody gives a number in place of the options. */
  readonly usual?: string;
  /** The names of options of something else, and what that is. */
  readonly elsewhere?: Readonly<Record<string, string>>;
}

/**
 * Checks options by their schema. One that it does not have is refused: a misspelt one would silently leave its default in
 * place. One that is undefined is absent.
 *
 * @param what the function that takes these options, for the error
 * @throws TypeError | RangeError with the unknown name, and the closest valid one or where it belongs, or the error of a check
 */
export function checkOptions<Options extends object>(
  what: string,
  options: Options,
  schema: Schema<Options>,
  { required = [], usual, elsewhere = {} }: OptionHints = {},
): Options {
  if (usual && typeof options === "number") {
    throw new TypeError(`options must be an object; did you mean { ${usual}: ${options} }?`);
  }
  if (typeof options === "function")
    throw new TypeError(`${what} needs an object of options before the function`);
  // The value is not shown: instead of the options it may be a secret.
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new TypeError(`${what} needs an object of options`);
  }
  const given = options as Readonly<Record<string, unknown>>;
  const checks: Readonly<Record<string, (name: string, value: never) => unknown>> = schema;
  for (const name of Object.keys(given)) {
    if (given[name] === undefined) continue;
    if (!Object.hasOwn(checks, name)) throw unknownOption(what, name, Object.keys(checks), elsewhere);
    checks[name]!(name, given[name] as never);
  }
  for (const name of required) if (given[name] === undefined) checks[name]!(name, undefined as never);
  return options;
}

function unknownOption(
  what: string,
  name: string,
  names: readonly string[],
  elsewhere: Readonly<Record<string, string>>,
): TypeError {
  const meant = nameHere(name, names) ?? nearest(name, names);
  const hint = Object.hasOwn(elsewhere, name)
    ? `it belongs to ${elsewhere[name]}`
    : meant
      ? `did you mean ${meant}?`
      : `there are ${names.join(", ")}`;
  return new TypeError(`${what} has no option ${JSON.stringify(name)}; ${hint}`);
}

/** The name that was probably meant, or undefined if no name is near. */
export function nearest(given: string, names: readonly string[]): string | undefined {
  const distance = (name: string) => Math.abs(name.length - given.length);
  return names
    .filter((name) => isNear(given.toLowerCase(), name.toLowerCase()))
    .sort((a, b) => distance(a) - distance(b))[0];
}

/** Whether they have four letters at the beginning in common, or one is the other with a letter more, less or changed. */
function isNear(given: string, known: string): boolean {
  let start = 0;
  while (given[start] && given[start] === known[start]) start += 1;
  const [rest, other] = [given.slice(start), known.slice(start)];
  return (
    start > 3 ||
    rest.slice(1) === other ||
    rest === other.slice(1) ||
    rest.slice(1) === other.slice(1) ||
    rest === `${other[1]}${other[0]}${other.slice(2)}`
  );
}

function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 80));
  if (value === null) return "null";
  if (Array.isArray(value) && value.length === 0) return "an empty array";
  return typeof value === "object" ? (value.constructor?.name ?? "object") : typeof value;
}
