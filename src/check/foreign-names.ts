// Names of methods and properties in other packages. A call of `undefined` names no way out, and a property that is undefined
// does harm without a word: `lock.expiration - Date.now() < 1_000` would always be false.

type Names = Readonly<Record<string, string>>;

/**
 * Makes methods throw that other packages have. They are methods, not getters that throw, because programs look whether an
 * object has an `on`.
 *
 * @param names what to use here, by their names
 */
export function refuseMethods(owner: string, prototype: object, names: Names): void {
  for (const name in names)
    define(prototype, name, { value: () => refuse(owner, name, names[name]!), writable: true });
}

/** Makes properties throw that other packages have. */
export function refuseProperties(owner: string, prototype: object, names: Names): void {
  for (const name in names) refuseProperty(owner, prototype, name, names[name]!);
}

/** Makes a property throw that an object does not have. */
export function refuseProperty(owner: string, object: object, name: string | symbol, here: string): void {
  define(object, name, { get: () => refuse(owner, name, here) });
}

function define(object: object, name: string | symbol, descriptor: PropertyDescriptor): void {
  Object.defineProperty(object, name, { ...descriptor, configurable: true });
}

function refuse(owner: string, name: string | symbol, here: string): never {
  throw new TypeError(`there is no ${owner}.${String(name)} here: use ${here}`);
}
