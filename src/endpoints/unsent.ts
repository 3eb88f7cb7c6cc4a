import type { Endpoint } from "./endpoint.ts";

/** By an endpoint's function: why it has not sent what it was given. Default: no connection was free. */
export const unsentReasons: WeakMap<Endpoint["send"], () => string> = new WeakMap();
