import { afterAll, beforeAll, beforeEach } from "vitest";
import { type Dialect, Redlock, type RedlockEvent, type RedlockOptions } from "../../src/index.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import { ampleTimeout, type Local, openLocal } from "./local-endpoints.ts";

/** Endpoints behind gateways, for the tests of one `describe`. */
export interface Gated {
  readonly local: Local;
  readonly gateways: readonly Gateway[];
  /** A client whose requests go through the gateways, with its events. */
  client(options?: Omit<RedlockOptions, "endpoints">): { redlock: Redlock; events: RedlockEvent[] };
  /** Requests that arrived at the gateways in this test. */
  requests(): number;
}

/** Opens the endpoints before the tests of the enclosing `describe`, empties them before each, and closes them after. */
export function gated(engine: "redis" | "embedded", count: number, dialect: Dialect): Gated {
  let local: Local;
  let gateways: Gateway[] = [];
  beforeAll(async () => {
    local = await openLocal({ engine, count, dialect });
  });
  beforeEach(async () => {
    // New gateways for each test: requests that an earlier test left pending must not be counted.
    await Promise.all(gateways.map((gateway) => gateway.close()));
    gateways = await Promise.all(local.endpoints.map(startGateway));
    await local.reset();
  });
  afterAll(async () => {
    await Promise.all(gateways.map((gateway) => gateway.close()));
    await local?.close();
  });
  return {
    get local() {
      return local;
    },
    get gateways() {
      return gateways;
    },
    client(options = {}) {
      const events: RedlockEvent[] = [];
      const onEvent = (event: RedlockEvent) => events.push(event);
      const endpoints = gateways.map((gateway) => gateway.endpoint(dialect));
      return { events, redlock: new Redlock({ timeout: ampleTimeout, onEvent, ...options, endpoints }) };
    },
    requests: () => gateways.reduce((sum, { requests }) => sum + requests.length, 0),
  };
}
