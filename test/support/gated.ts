import { afterAll, beforeAll, beforeEach } from "vitest";
import { type Dialect, Redlock, type RedlockEvent, type RedlockOptions } from "../../src/index.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import { type Local, openLocal, patience } from "./local-endpoints.ts";

/** Endpoints behind gateways, for the tests of one `describe`. */
export interface Gated {
  readonly local: Local;
  readonly gateways: readonly Gateway[];
  /** A client that goes through the gateways and keeps its events. */
  client(options?: Omit<RedlockOptions, "endpoints">): { redlock: Redlock; events: RedlockEvent[] };
  /** Requests that arrived at the gateways in this test. */
  requests(): number;
}

/** Opens them before the tests of the surrounding `describe`, empties them before each and closes them after. */
export function gated(engine: "redis" | "embedded", count: number, dialect: Dialect): Gated {
  let local: Local;
  let gateways: Gateway[] = [];
  beforeAll(async () => {
    local = await openLocal({ engine, count, dialect });
  });
  beforeEach(async () => {
    // New ones for each test: what an earlier test left hanging there must not be counted in this one.
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
      return { events, redlock: new Redlock({ timeout: patience, onEvent, ...options, endpoints }) };
    },
    requests: () => gateways.reduce((sum, { requests }) => sum + requests.length, 0),
  };
}
