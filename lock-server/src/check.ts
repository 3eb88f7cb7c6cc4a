// Checks of options. Messages contain the wrong value.

/** A number within bounds, both included. */
export function checkNumber(name: string, value: number, min: number, max: number): number {
  if (typeof value !== "number" || Number.isNaN(value)) throw wrongType(name, value, "a number");
  if (value >= min && value <= max) return value;
  throw new RangeError(`${name} must be between ${min} and ${max}, got ${value}`);
}

/**
 * Options as an object that has only known names: a misspelt one would silently leave its default in place.
 *
 * @param usual the option that is meant where somebody gives a number instead
 * @throws TypeError with the unknown name, and the one that was probably meant
 */
export function checkOptions<Options extends object>(
  what: string,
  options: Options,
  known: Readonly<Record<keyof Options, 1>>,
  usual?: string,
): Options {
  if (typeof options === "number" && usual !== undefined) {
    throw new TypeError(`options must be an object; did you mean { ${usual}: ${options} }?`);
  }
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw wrongType("options", options, "an object");
  }
  const names = Object.keys(known);
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown === undefined) return options;
  throw new TypeError(`${what} has no option ${JSON.stringify(unknown)}; ${hintFor(unknown, names)}`);
}

/** The error for a value that is not what it must be: `expected` says what, with an article. */
export function wrongType(name: string, value: unknown, expected: string): TypeError {
  if (value === undefined) return new TypeError(`${name} is missing: it must be ${expected}`);
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  const shown = typeof value === "object" ? (value?.constructor?.name ?? "null") : text;
  return new TypeError(`${name} must be ${expected}, got ${shown}`);
}

/** What to do about an unknown name: the one that was probably meant, else all that there are. */
export function hintFor(given: string, names: readonly string[]): string {
  const lettersOf = (name: string) => [...name].sort().join("");
  const isNear = (name: string) =>
    name.startsWith(given) || given.startsWith(name) || lettersOf(name) === lettersOf(given);
  const meant = names.find(isNear);
  return meant === undefined ? `there are ${names.join(", ")}` : `did you mean ${meant}?`;
}
