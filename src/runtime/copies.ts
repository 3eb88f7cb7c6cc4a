/**
 * A value that all copies of this package in a process share: a module that a dev server has loaded again, ESM beside
 * CommonJS, two versions. Call it when the value is needed, because a module must do nothing while it is loaded.
 *
 * @param name stands for the value's shape as well: another shape needs another name
 */
export function sharedByCopies<Value>(name: string, make: () => Value): Value {
  const values = globalThis as { [key: symbol]: unknown };
  const key = Symbol.for(`redlock-edge.${name}`);
  if (!values[key]) Object.defineProperty(globalThis, key, { value: make() });
  return values[key] as Value;
}
