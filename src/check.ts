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

/** A value of the right type; null and arrays are not objects. */
export function checkType<Value>(name: string, value: Value, type: string): Value {
  if (typeof value === type && value !== null && !Array.isArray(value)) return value;
  throw wrongType(name, value, type === "object" ? "an object" : `a ${type}`);
}

/** Options as an object. `usual`: the option that is meant where somebody gives a number instead. */
export function checkOptions<Options>(options: Options, usual: string): Options {
  if (typeof options !== "number") return checkType("options", options, "object");
  throw new TypeError(`options must be an object; did you mean { ${usual}: ${options} }?`);
}

/** Refuses to run a method without its object: the `this` of one that was taken off it is missing. */
export function checkThis(object: unknown, call: string): void {
  if (!object) throw new TypeError(`the method was taken off its object: call it as ${call}`);
}

/** The error for a value that is not what it must be: `expected` says what, with an article. */
export function wrongType(name: string, value: unknown, expected: string): TypeError {
  const what = value === undefined ? "is missing: it must be" : "must be";
  return new TypeError(`${name} ${what} ${expected}${value === undefined ? "" : `, got ${show(value)}`}`);
}

/** Text of 1 … `most` characters. The message contains its length only; it may be a secret. */
export function checkText(name: string, value: string, most = 255): string {
  const { length } = checkType(name, value, "string");
  if (length < 1 || length > most) {
    throw new RangeError(`${name} must have 1 … ${most} characters, has ${length}`);
  }
  return checkWellFormed(name, value);
}

/**
 * Text that UTF-8 can represent. Half of a surrogate pair arrives in Redis as the same replacement character as every
 * other half: different names would become one there.
 */
export function checkWellFormed(name: string, value: string): string {
  if (/\p{Surrogate}/u.test(value)) throw new RangeError(`${name} has half of a surrogate pair in it`);
  return value;
}

/**
 * Refuses unknown options: a misspelt one would silently leave its default in place. One that is undefined changes nothing
 * anywhere.
 *
 * @param elsewhere the names of options of something else, and what that is
 * @throws TypeError with the unknown name, and the closest valid one or where it belongs
 */
export function checkNames<Options extends object>(
  what: string,
  options: Options,
  known: Readonly<Record<string, unknown>>,
  elsewhere: Readonly<Record<string, string>> = {},
): Options {
  // The value is not shown: instead of the options it may be a secret.
  if (typeof options !== "object" || options === null)
    throw new TypeError(`${what} needs an object of options`);
  const names = Object.keys(known);
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || names.includes(name)) continue;
    const near = nearest(name, names);
    const hint = Object.hasOwn(elsewhere, name)
      ? `it belongs to ${elsewhere[name]}`
      : near
        ? `did you mean ${near}?`
        : `there are ${names.join(", ")}`;
    throw new TypeError(`${what} has no option ${JSON.stringify(name)}; ${hint}`);
  }
  return options;
}

/** The name that was probably meant; undefined where none is near. */
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

/**
 * A scope: one name or several, none of them empty. A scope with empty parts would be shared by callers that are
 * unrelated.
 */
export function checkScope(scope: string | readonly string[]): string | readonly string[] {
  const parts: unknown = typeof scope === "string" ? [scope] : scope;
  if (!Array.isArray(parts) || parts.length === 0) {
    throw new TypeError(`scope must be a string, or an array of at least one, got ${show(scope)}`);
  }
  for (const part of parts) {
    if (!checkType("a part of scope", part as unknown, "string"))
      throw new RangeError("scope must have no empty part");
  }
  return scope;
}

function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 80));
  if (value === null) return "null";
  if (Array.isArray(value) && value.length === 0) return "an empty array";
  return typeof value === "object" ? (value.constructor?.name ?? "object") : typeof value;
}
