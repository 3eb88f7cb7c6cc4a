// Names of methods and properties in other packages. `lock.expiration - Date.now() < 1_000`, for example, would always
// be false here.

type Names = Readonly<Record<string, string>>;

/**
 * Makes other packages' methods throw. They are no getters, because programs look whether an object has an `on`.
 *
 * @param names what to use here, by their names
 */
export function refuseMethods(owner: string, prototype: object, names: Names): void {
  for (const name in names)
    define(prototype, name, { value: () => refuse(owner, name, names[name]!), writable: true });
}

export function refuseProperties(owner: string, prototype: object, names: Names): void {
  for (const name in names) refuseProperty(owner, prototype, name, names[name]!);
}

export function refuseProperty(owner: string, object: object, name: string | symbol, here: string): void {
  define(object, name, { get: () => refuse(owner, name, here) });
}

function define(object: object, name: string | symbol, descriptor: PropertyDescriptor): void {
  Object.defineProperty(object, name, { ...descriptor, configurable: true });
}

function refuse(owner: string, name: string | symbol, here: string): never {
  throw new TypeError(`there is no ${owner}.${String(name)} here: use ${here}`);
}
