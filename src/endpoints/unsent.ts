import type { Endpoint } from "./endpoint.ts";

/** By an endpoint's function: why a command still waits to be sent. Default: others were sent first. */
export const unsentReasons: WeakMap<Endpoint["send"], () => string> = new WeakMap();
