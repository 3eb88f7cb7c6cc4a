import { checkThis, wrongType } from "../check/check.ts";
import { type AcquireOptions, type LockOptions, resolveSettings, type Settings } from "./options.ts";

/** The parts of a client. */
export interface ClientState {
  /** Endpoints, runtime and defaults, checked. */
  readonly settings: Settings;
  /** The defaults as they were given. */
  readonly options: LockOptions;
}

/** A client: a {@link Redlock}. Nothing else will do: the parts that the functions beside it need are internal. */
export interface LockClient {
  /** See {@link Redlock}. */
  acquire(resource: string | readonly string[], options?: AcquireOptions): Promise<unknown>;
  /** See {@link Redlock}. */
  tryAcquire(resource: string | readonly string[], options?: AcquireOptions): Promise<unknown>;
}

// A registered symbol, so that a second copy of this package finds it. No log shows it: it is not enumerable.
const stateKey = Symbol.for("redlock-edge.client");

/** Makes an object a client. */
export function setClientState(redlock: LockClient, value: ClientState): void {
  Object.defineProperty(redlock, stateKey, { value });
}

/**
 * @param call a call of its method, where it is the `this` of one
 * @throws TypeError when it is not a client
 */
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

/** The arguments of a function beside the client, in their order. One that is not listed here is a function. */
const kinds: Readonly<Record<string, string>> = { name: "string", key: "string", options: "object" };

/**
 * Checks what stands in each place of a call, from left to right: if an argument is left out, all after it are in wrong places,
 * and the first of them tells the reader which. Options have checks of their own, which know what a number stands for.
 *
 * @param call how it is called, for the error
 * @param given the arguments by their names, `redlock` for the client
 * @throws TypeError with the first argument that is of another kind
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

/** The settings of a call beside the client's own methods: the client's defaults, then further layers, each checked. */
export function settingsOf(redlock: LockClient, ...layers: LockOptions[]): Settings {
  const { settings, options } = clientStateOf(redlock);
  return resolveSettings(settings, options, ...layers);
}
