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
  const state = (redlock as { readonly [stateKey]?: ClientState } | undefined)?.[stateKey];
  if (state) return state;
  throw wrongType("redlock", redlock, "a client: new Redlock({ endpoints })");
}

/** The settings of a call beside the client's own methods: the client's defaults, then further layers, each checked. */
export function settingsOf(redlock: LockClient, ...layers: LockOptions[]): Settings {
  const { settings, options } = clientStateOf(redlock);
  return resolveSettings(settings, options, ...layers);
}
