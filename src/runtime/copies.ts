/**
 * A value that all copies of this package in a process share: a dev server's reload, ESM beside CommonJS, two versions.
 *
 * @param name stands for the value's shape as well
 */
export function sharedByCopies<Value>(name: string, make: () => Value): Value {
  const values = globalThis as { [key: symbol]: unknown };
  const key = Symbol.for(`redlock-edge.${name}`);
  if (!values[key]) Object.defineProperty(globalThis, key, { value: make() });
  return values[key] as Value;
}
