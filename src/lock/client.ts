import { checkThis, wrongType } from "../check/check.ts";
import { type AcquireOptions, type LockOptions, resolveSettings, type Settings } from "./options.ts";

export interface ClientState {
  readonly settings: Settings;
  readonly options: LockOptions;
}

/** A {@link Redlock}: nothing else has the internal parts. */
export interface LockClient {
  /** See {@link Redlock}. */
  acquire(resource: string | readonly string[], options?: AcquireOptions): Promise<unknown>;
  /** See {@link Redlock}. */
  tryAcquire(resource: string | readonly string[], options?: AcquireOptions): Promise<unknown>;
}

// Registered, so that a second copy of this package finds it, and not enumerable, so that no log shows it.
const stateKey = Symbol.for("redlock-edge.client");

export function setClientState(redlock: LockClient, value: ClientState): void {
  Object.defineProperty(redlock, stateKey, { value });
}

/** @throws TypeError when it is not a client */
export function clientStateOf(redlock: LockClient, call?: string): ClientState {
  if (call) checkThis(redlock, call);
  return stateIn(redlock) ?? throwNoClient(redlock);
}

function stateIn(redlock: unknown): ClientState | undefined {
  return (redlock as { readonly [stateKey]?: ClientState } | undefined)?.[stateKey];
}

function throwNoClient(redlock: unknown, example = ""): never {
  throw wrongType("redlock", redlock, `a client: new Redlock({ endpoints })${example}`);
}

/** Any other argument is a function. */
const kinds: Readonly<Record<string, string>> = { name: "string", key: "string", options: "object" };

/**
 * From left to right: if you leave one out, all after it are in wrong places, and the error names the first. Options
 * have checks of their own.
 */
export function checkCall(call: string, given: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(given)) {
    const type = kinds[name] ?? "function";
    const example = `, as in ${call}`;
    if (name === "redlock") {
      if (!stateIn(value)) throwNoClient(value, example);
    } else if (name !== "options") {
      if (typeof value !== type) throw wrongType(name, value, `a ${type}${example}`);
    } else if (value === undefined || typeof value === "function") {
      throw wrongType(name, value, `an object${example}`);
    }
  }
}

export function settingsOf(redlock: LockClient, ...layers: LockOptions[]): Settings {
  const { settings, options } = clientStateOf(redlock);
  return resolveSettings(settings, options, ...layers);
}
