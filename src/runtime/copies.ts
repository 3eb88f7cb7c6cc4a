/**
 * A value that all copies of this package in a process share: a dev server's reload, ESM beside CommonJS, two versions.
 * Call it when you need the value, because a module must do nothing while it is loaded.
 *
 * @param name stands for the value's shape as well
 */
export function sharedByCopies<Value>(name: string, make: () => Value): Value {
  const values = globalThis as { [key: symbol]: unknown };
  const key = Symbol.for(`redlock-edge.${name}`);
  if (!values[key]) Object.defineProperty(globalThis, key, { value: make() });
  return values[key] as Value;
}
