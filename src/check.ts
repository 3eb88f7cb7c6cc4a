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

/** A value of the right type. */
export function checkType<Value>(name: string, value: Value, type: string): Value {
  if (typeof value !== type) throw new TypeError(`${name} must be a ${type}, got ${show(value)}`);
  return value;
}

function show(value: unknown): string {
  return typeof value === "string"
    ? JSON.stringify(value.slice(0, 80))
    : `${value === null ? value : typeof value}`;
}
