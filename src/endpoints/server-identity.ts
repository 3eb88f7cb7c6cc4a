import type { Endpoint } from "./endpoint.ts";

/** By an endpoint's function: what stands for the server behind it. */
const servers = new WeakMap<Endpoint["send"], object>();

/** By address and token. */
const addresses = new Map<string, object>();

/** More addresses than one process has; beyond it, what is known of them is forgotten, and learnt again. */
const mostAddresses = 1_000;

/** Says that all endpoints of this address have one server: on Workers, each request makes clients of its own. */
export function setAddress(send: Endpoint["send"], href: string, token: string): void {
  const address = `${href} ${token}`;
  let server = addresses.get(address);
  if (!server) {
    if (addresses.size >= mostAddresses) addresses.clear();
    server = {};
    addresses.set(address, server);
  }
  setServer(send, server);
}

/** Says that this object stands for the server. */
export function setServer(send: Endpoint["send"], server: object): void {
  servers.set(send, server);
}

/** What stands for an endpoint's server: the key of what is known of it. */
export function serverOf(endpoint: Endpoint): object {
  return servers.get(endpoint.send) ?? endpoint;
}
