import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type LocalEndpoints, start } from "../../../local/src/index.ts";
import { memoryEndpoint } from "../../../local/src/memory/index.ts";
import { Idempotency } from "../../../src/idempotency/index.ts";
import {
  type Endpoint,
  EndpointError,
  type HttpEndpointOptions,
  type QuorumError,
  Redlock,
  upstashEndpoint,
} from "../../../src/index.ts";
import { CountDownLatch, debounce, once, Semaphore } from "../../../src/sync/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { newResource, sdkClient } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import { type RawReply, type RawServer, startRawServer } from "../../support/raw-server.ts";
import { steppingRuntime } from "../../support/stepping-runtime.ts";
import { watch } from "../../support/virtual-client.ts";

// What no retry can mend must not be retried for the whole `wait`.

let local: LocalEndpoints;
/** Answers below each of the paths of `answers`. */
let others: RawServer;
beforeAll(async () => {
  local = await start({ count: 3, engine: "embedded" });
  others = await startRawServer(({ path }) => answers[path.split("/")[1]!]!);
});
afterAll(() => Promise.all([local.close(), others.close()]));
beforeEach(() => {
  for (const { log } of local.endpoints) log.reset();
});

/** An error of Redis, as the REST API returns it. */
const refusal = (error: string) => ({ status: 400, body: JSON.stringify({ error }) });

const answers: Record<string, RawReply> = {
  website: { status: 404, body: "<h1>Not found</h1>" },
  // Of every token, as serverless-redis-http does.
  refusing: { status: 401, body: '{"error":"Invalid token"}' },
  usedUp: refusal("ERR max requests limit exceeded. Limit: 500000, Usage: 500000"),
  // It does not serve the slot.
  node: refusal("MOVED 866 10.0.0.7:6379"),
};
const at = (basePath: string, name: string) => ({ url: others.url, basePath, token: "t", name });

const requests = () => local.endpoints.map(({ log }) => log.requests);

/** The mistakes in the settings of an endpoint, and the error that they lead to. */
const mistakes = {
  "a wrong token": ({ url }) => ({ url, token: "wrong" }),
  "a read-only token": ({ url, readOnlyToken }) => ({ url, token: readOnlyToken }),
  "an address of something else": ({ name }) => at("/website", name),
  "a plan that is used up": ({ name }) => at("/usedUp", name),
  "a node of a Cluster": ({ name }) => at("/node", name),
  "a wrong token of an SDK": ({ url, name }) => upstashEndpoint(sdkClient({ url, token: "wrong" }), { name }),
  "a wrong token of an SDK at another server": ({ name }) =>
    upstashEndpoint(sdkClient({ url: `${others.url}/refusing`, token: "wrong" }), {
      name,
      basePath: "/refusing",
    }),
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

test("an endpoint that answers 429 with retry-after is asked again when that time is over, and not by a call that cannot wait for so long", async () => {
  const runtime = steppingRuntime();
  const memory = memoryEndpoint({ name: "busy", dialect: "upstash", runtime });
  const asked: number[] = [];
  const send: Endpoint["send"] = async (command, signal) => {
    asked.push(runtime.elapsed);
    if (runtime.elapsed >= 3_000) return memory.send(command, signal);
    throw new EndpointError("busy", "http", "HTTP 429", {
      status: 429,
      retryAfter: 3_000 - runtime.elapsed,
    });
  };
  const endpoint: Endpoint = { name: "busy", dialect: "upstash", exactReplies: true, send };
  const acquire = (wait: number) => watch(new Redlock({ endpoints: [endpoint], runtime, wait }).acquire("r"));
  const brief = acquire(2_900);
  await runtime.advance(0);
  expect(brief.error).toMatchObject({ votes: [{ cause: { status: 429, permanent: false } }] });
  asked.splice(0);
  const call = acquire(10_000);
  await runtime.advance(2_999);
  expect([call.settled, asked.length <= 3]).toEqual([false, true]);
  await runtime.advance(1);
  expect(call.value).toBeDefined();
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
