import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type LocalEndpoints, start } from "../../../local/src/index.ts";
import { Idempotency } from "../../../src/idempotency/index.ts";
import {
  type Endpoint,
  type EndpointError,
  type HttpEndpointOptions,
  type QuorumError,
  Redlock,
  upstashEndpoint,
} from "../../../src/index.ts";
import { CountDownLatch, debounce, once, Semaphore } from "../../../src/sync/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { newResource, sdkClient } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import { type RawServer, startRawServer } from "../../support/raw-server.ts";

// What no retry can mend must not be retried for the whole `wait`.

let local: LocalEndpoints;
/** A web server that is no endpoint. */
let website: RawServer;
/** Refuses every token as serverless-redis-http does. */
let srh: RawServer;
beforeAll(async () => {
  local = await start({ count: 3, engine: "embedded" });
  website = await startRawServer(() => ({ status: 404, body: "<h1>Not found</h1>" }));
  srh = await startRawServer(() => ({ status: 401, body: '{"error":"Invalid token"}' }));
});
afterAll(() => Promise.all([local.close(), website.close(), srh.close()]));
beforeEach(() => {
  for (const { log } of local.endpoints) log.reset();
});

const requests = () => local.endpoints.map(({ log }) => log.requests);

/** The mistakes in the settings of an endpoint, and the error that they lead to. */
const mistakes = {
  "a wrong token": ({ url }) => ({ url, token: "wrong" }),
  "a read-only token": ({ url, readOnlyToken }) => ({ url, token: readOnlyToken }),
  "an address of something else": ({ token, name }) => ({ url: website.url, token, name }),
  "a wrong token of an SDK": ({ url, name }) => upstashEndpoint(sdkClient({ url, token: "wrong" }), { name }),
  "a wrong token of an SDK at another server": ({ name }) =>
    upstashEndpoint(sdkClient({ url: srh.url, token: "wrong" }), { name }),
} satisfies Record<string, (endpoint: LocalEndpoints["endpoints"][number]) => HttpEndpointOptions | Endpoint>;

describe.each(Object.entries(mistakes))("%s", (_, mistaken) => {
  /** A client with so many endpoints that are set up wrong, which would wait for ever. */
  const client = (wrong: number) =>
    new Redlock({
      endpoints: local.endpoints.map((each, index) => (index < wrong ? mistaken(each) : each)),
      ...patient,
      wait: Infinity,
      waitUntil: () => undefined,
    });

  test.each<[string, (redlock: Redlock, name: string) => Promise<unknown>]>([
    ["acquire", (redlock, name) => redlock.acquire(name)],
    ["acquire with fencing", (redlock, name) => redlock.acquire(name, { fencing: true })],
    ["an idempotent run", (redlock, name) => new Idempotency(redlock, { wait: Infinity }).run(name, () => 1)],
    ["a semaphore", (redlock, name) => new Semaphore(redlock, name, { limit: 1 }).acquire()],
    ["once", (redlock, name) => once(redlock, name, { every: 1_000_000, wait: Infinity }, () => 1)],
    ["debounce", (redlock, name) => debounce(redlock, name, { window: 1 }, () => 1)],
    ["a latch", (redlock, name) => new CountDownLatch(redlock, name, { count: 1 }).wait({ wait: Infinity })],
  ])("ends %s at once when it rules out a quorum", async (_, call) => {
    const error = (await rejection(call(client(2), newResource()))) as QuorumError;
    expect(error.code).toBe("NO_QUORUM");
    const causes = error.votes.flatMap(({ cause = [] }) => cause) as EndpointError[];
    expect(causes.filter(({ permanent }) => permanent)).toHaveLength(2);
    // One round and its rollback.
    for (const count of requests().slice(0, 2)) expect(count).toBeLessThanOrEqual(2);
  });

  test("of a minority hinders nobody", async () => {
    const lock = await client(1).acquire(newResource());
    expect(await lock.release()).toBe(true);
  });
});

test("an outage is not permanent: the call waits for the endpoints to come back", async () => {
  for (const { faults } of local.endpoints) faults.add({ fault: "status", status: 503, times: 2 });
  const redlock = new Redlock({
    endpoints: local.endpoints,
    ...patient,
    wait: Infinity,
    backoff: { min: 1, max: 5 },
  });
  const lock = await redlock.acquire(newResource());
  expect(await lock.release()).toBe(true);
});
