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
  for (const [name, here] of Object.entries(names)) {
    define(prototype, name, { value: () => refuse(owner, name, here), writable: true });
  }
}

/** Makes properties throw that other packages have. */
export function refuseProperties(owner: string, prototype: object, names: Names): void {
  for (const [name, here] of Object.entries(names)) {
    define(prototype, name, { get: () => refuse(owner, name, here) });
  }
}

function define(prototype: object, name: string, descriptor: PropertyDescriptor): void {
  Object.defineProperty(prototype, name, { ...descriptor, configurable: true });
}

function refuse(owner: string, name: string, here: string): never {
  throw new TypeError(`there is no ${owner}.${name} here: use ${here}`);
}
