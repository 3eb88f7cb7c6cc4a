import type { Ask } from "../../src/endpoints/ask.ts";
import type { Endpoint } from "../../src/index.ts";

/** Asks an endpoint outside of a round, without a limit. */
export function askOf(endpoint: Endpoint): Ask {
  const { signal } = new AbortController();
  return { endpoint, send: (command) => endpoint.send(command, signal) };
}
