import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type LocalEndpoint, type LocalEndpoints, start } from "../../../local/src/index.ts";
import { Idempotency } from "../../../src/idempotency/index.ts";
import {
  type Endpoint,
  endpointsFromEnv,
  type HttpEndpointOptions,
  QuorumError,
  Redlock,
  upstashEndpoint,
} from "../../../src/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { newResource, sdkClient } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";

// Upstash takes commands from the path, too, with the body as their last argument: `POST /set/foo` answers "OK" to every
// command. Local endpoints do the same.

let local: LocalEndpoints;
let endpoint: LocalEndpoint;
/** Serves the endpoint below /redis, as a gateway does. */
let gateway: Gateway;
beforeAll(async () => {
  local = await start({ count: 1, engine: "embedded" });
  [endpoint] = local.endpoints as [LocalEndpoint];
  gateway = await startGateway(endpoint, { basePath: "/redis" });
});
afterAll(() => Promise.all([local.close(), gateway.close()]));
beforeEach(() => endpoint.log.reset());

type Given = { readonly url: string; readonly basePath?: string };
const settings = { ...patient, wait: 0 };

const ways: Record<string, (given: Given) => HttpEndpointOptions | Endpoint> = {
  "an address": (given) => ({ ...given, token: endpoint.token }),
  "variables of the environment": ({ url, ...given }) => {
    const [one] = endpointsFromEnv({ UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: endpoint.token });
    return { ...one!, ...given };
  },
  "a client of @upstash/redis": ({ url, basePath }) => {
    const client = sdkClient({ url: `${url}${basePath ?? ""}`, token: endpoint.token });
    return upstashEndpoint(client, { basePath });
  },
};

describe.each(Object.entries(ways))("%s", (_, reach) => {
  const client = (given: Given) => new Redlock({ ...settings, endpoints: [reach(given)] });

  // Which addresses these are: test/unit/endpoints/address.test.ts.
  test.each(["/set/foo", "?_token=x"])(
    "that ends with %s is refused, before a request is sent",
    async (end) => {
      const acquire = async () => client({ url: endpoint.url + end }).tryAcquire("one");
      expect(await rejection(acquire())).toBeInstanceOf(TypeError);
      expect(endpoint.log.requests).toBe(0);
    },
  );

  test.each(["/set/foo", "/append/bar"])(
    "with the base path %s, which no gateway takes off, makes nobody a holder",
    async (basePath) => {
      const redlock = client({ url: endpoint.url, basePath });
      for (const options of [{}, { fencing: true }]) {
        const [resource, effect] = [newResource(), vi.fn(() => 1)];
        expect(await rejection(redlock.acquire(resource, options))).toBeInstanceOf(QuorumError);
        expect(await rejection(redlock.acquire(resource, options))).toBeInstanceOf(QuorumError);
        await rejection(new Idempotency(redlock, { wait: 0 }).run(resource, effect));
        expect(effect).not.toHaveBeenCalled();
      }
    },
  );

  test("with the base path of a gateway has one holder", async () => {
    const one = client({ url: gateway.url, basePath: "/redis" });
    const resource = newResource();
    const lock = await one.acquire(resource);
    expect(await client({ url: gateway.url, basePath: "/redis" }).tryAcquire(resource)).toBeNull();
    expect(await new Redlock({ ...settings, endpoints: [endpoint] }).tryAcquire(resource)).toBeNull();
    expect(await lock.extend()).toBeGreaterThan(0);
    expect(await lock.release()).toBe(true);
    const effect = vi.fn(() => 1);
    const idempotency = new Idempotency(one);
    await idempotency.run(resource, effect);
    await idempotency.run(resource, effect);
    expect(effect).toHaveBeenCalledOnce();
  });
});

test("a client of @upstash/redis must have the base path that the options name", () => {
  const client = sdkClient({ url: gateway.url, token: endpoint.token });
  expect(() => upstashEndpoint(client, { basePath: "/redis" })).toThrow(TypeError);
  const other = sdkClient({ url: `${gateway.url}/redis/`, token: endpoint.token });
  expect(upstashEndpoint(other, { basePath: "/redis/" }).name).toBe(`${new URL(gateway.url).host}/redis`);
});

test("two databases behind one gateway are told apart, and one under two names is not", () => {
  const at = (basePath: string) => ({ url: "https://gw.example", token: "t", basePath });
  expect(() => new Redlock({ endpoints: [at("/a"), at("/b")] })).not.toThrow();
  expect(() => new Redlock({ endpoints: [at("/a"), at("/a/")] })).toThrow(RangeError);
});
