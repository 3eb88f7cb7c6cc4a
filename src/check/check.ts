import { nameHere } from "./foreign-options.ts";

// Messages contain the wrong value, unless it may be a secret.

export function checkNumber(name: string, value: number, min: number, max: number): number {
  if (!(checkType(name, value, "number") >= min && value <= max)) {
    throw new RangeError(`${name} must be between ${min} and ${max}, got ${value}`);
  }
  return value;
}

export function checkInteger(name: string, value: number, min: number, max: number): number {
  if (!Number.isInteger(checkNumber(name, value, min, max))) {
    throw new RangeError(`${name} must be an integer, got ${value}`);
  }
  return value;
}

export function checkType<Value>(name: string, value: Value, type: string): Value {
  if (typeof value === type && value !== null && !Array.isArray(value)) return value;
  throw wrongType(name, value, type === "object" ? "an object" : `a ${type}`);
}

/** A method that was taken off its object has no `this`. */
export function checkThis(object: unknown, call: string): void {
  if (!object) throw new TypeError(`the method was taken off its object: call it as ${call}`);
}

export function wrongType(name: string, value: unknown, expected: string): TypeError {
  const what = value === undefined ? "is missing: it must be" : "must be";
  return new TypeError(`${name} ${what} ${expected}${value === undefined ? "" : `, got ${show(value)}`}`);
}

/** The message has the length only, because the text may be a secret. */
export function checkText(name: string, value: string, most = 255): string {
  const { length } = checkType(name, value, "string");
  if (length < 1 || length > most) {
    const allowed = most === Infinity ? "at least 1 character" : `1 … ${most} characters`;
    throw new RangeError(`${name} must have ${allowed}, has ${length}`);
  }
  return checkWellFormed(name, value);
}

/** The name of a lock or of work to do once. No part of it may stand for a missing value. */
export function checkName(option: string, name: string, most = 1_024): string {
  checkText(option, name, most);
  const missing = missingPartOf(name);
  if (!missing) return name;
  throw new RangeError(
    `${option} ${JSON.stringify(name)} has the part "${missing}": is a variable in it not set?`,
  );
}

/**
 * A template makes it of a missing value, as in `order:${undefined}` and `order-${undefined}`, but not-null-check is
 * none.
 */
export function missingPartOf(name: string): string | undefined {
  const form = /(?:^|[:/#|=@,.\s_-])(undefined|null|NaN|Invalid Date|\[object \w+\])(?:$|[:/#|=@,.])/;
  return form.exec(name)?.[1];
}

/** Half of a surrogate pair arrives in Redis as the replacement character, so different names would become one. */
export function checkWellFormed(name: string, value: string): string {
  if (!isWellFormed(value)) throw new RangeError(`${name} has half of a surrogate pair in it`);
  return value;
}

export function isWellFormed(value: string): boolean {
  return !/\p{Surrogate}/u.test(value);
}

/** Throws a TypeError or RangeError that names the option. */
export type Check = (name: string, value: never) => unknown;

export type Schema<Options> = { readonly [Name in keyof Options]-?: Check };

export function number(min: number, max: number, unit?: "ms"): Check {
  return (name, value) => checkNumber(unit ? `${name} (${unit})` : name, value, min, max);
}

export function integer(min: number, max: number): Check {
  return (name, value) => checkInteger(name, value, min, max);
}

const toldOfSeconds = new Set<string>();

/** Less than `least`, an hour of seconds, or days of them. */
function isInSeconds(ms: number, least: number): boolean {
  return ms > 0 && (ms < least || ms === 3_600 || (ms % 86_400 === 0 && ms <= 31 * 86_400));
}

/**
 * Warns once for each option if a time was probably meant in seconds. The time is taken, because tests need short
 * times.
 */
export function tellOfSeconds(name: string, ms: number, least = 1_000): void {
  if (!isInSeconds(ms, least) || toldOfSeconds.has(name)) return;
  toldOfSeconds.add(name);
  console.warn(`redlock-edge: ${name}: ${ms} is in ms; did you mean ${ms} * 1_000?`);
}

export function milliseconds(min: number, max: number, least?: number): Check {
  return (name, value) => tellOfSeconds(name, checkInteger(`${name} (ms)`, value, min, max), least);
}

export function typed(type: "boolean" | "function" | "object" | "string"): Check {
  return (name, value) => checkType(name, value, type);
}

export function oneOf(...texts: readonly string[]): Check {
  return (name, value) => {
    if (texts.includes(value)) return;
    const all = texts.map((text) => JSON.stringify(text));
    throw new RangeError(
      `${name} must be ${all.slice(0, -1).join(", ")} or ${all.at(-1)}, got ${show(value)}`,
    );
  };
}

export const abortSignal: Check = (name, value: unknown) => {
  if (typeof Object(value).removeEventListener === "function") return;
  throw wrongType(name, value, "an AbortSignal: controller.signal");
};

/** An option that its user checks. */
export const later: Check = () => undefined;

export interface OptionHints {
  readonly required?: readonly string[];
  /** Meant if somebody gives a number in place of the options. */
  readonly usual?: string;
  /** Names of other options, and where they belong. */
  readonly elsewhere?: Readonly<Record<string, string>>;
}

/**
 * Refuses unknown options, because a misspelt one would leave its default in place. Undefined is absent.
 *
 * @param what the function that takes these options, for the error
 * @throws TypeError | RangeError
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
  // Not shown, because it may be a secret.
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

/** The name that was probably meant. */
export function nearest(given: string, names: readonly string[]): string | undefined {
  const distance = (name: string) => Math.abs(name.length - given.length);
  return names
    .filter((name) => isNear(given.toLowerCase(), name.toLowerCase()))
    .sort((a, b) => distance(a) - distance(b))[0];
}

/** The given one ends with the known one, or they begin with four equal letters or differ in one letter. */
function isNear(given: string, known: string): boolean {
  let start = 0;
  while (given[start] && given[start] === known[start]) start += 1;
  const [rest, other] = [given.slice(start), known.slice(start)];
  return (
    start > 3 ||
    given.endsWith(known) ||
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
