// What arguments must be. Messages carry the offending value, except where it may be a secret.

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

/** A value of the right type; null is no object. */
export function checkType<Value>(name: string, value: Value, type: string): Value {
  if (typeof value !== type || value === null)
    throw new TypeError(`${name} must be a ${type}, got ${show(value)}`);
  return value;
}

/** Text of 1 … `most` characters. Its length alone is told; it may be a secret. */
export function checkText(name: string, value: string, most = 255): string {
  const { length } = checkType(name, value, "string");
  if (length < 1 || length > most) {
    throw new RangeError(`${name} must have 1 … ${most} characters, has ${length}`);
  }
  return checkWellFormed(name, value);
}

/**
 * Text that UTF-8 can hold. Half of a surrogate pair arrives in Redis as the same replacement as every other half:
 * different names would become one there.
 */
export function checkWellFormed(name: string, value: string): string {
  if (/\p{Surrogate}/u.test(value)) throw new RangeError(`${name} has half of a surrogate pair in it`);
  return value;
}

function show(value: unknown): string {
  return typeof value === "string"
    ? JSON.stringify(value.slice(0, 80))
    : `${value === null ? value : typeof value}`;
}
