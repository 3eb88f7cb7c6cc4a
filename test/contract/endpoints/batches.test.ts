import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type LocalEndpoint, type LocalEndpoints, start } from "../../../local/src/index.ts";
import { httpEndpoint, type QuorumError, Redlock, type RedlockEvent } from "../../../src/index.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { gate } from "../../support/link.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import type { RawReply, RawRequest } from "../../support/raw-server.ts";
import { until } from "../../support/until.ts";

// Many calls at once share requests. The endpoints are local ones, behind gateways that see every request.

const timeout = 8_000;
const ttl = 60_000;
let local: LocalEndpoints;
let gateways: Gateway[];

beforeAll(async () => {
  local = await start({ count: 3, engine: "embedded" });
  gateways = await Promise.all(local.endpoints.map((each) => startGateway(each)));
});

afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway.close()));
  await local.close();
});

const endpoints = () => gateways.map((gateway) => gateway.endpoint("redis"));
const names = (count: number) => Array.from({ length: count }, () => newResource());

/** What is sent while `act` runs. */
async function sentBy(act: () => Promise<unknown>): Promise<RawRequest[]> {
  const before = gateways.map(({ requests }) => requests.length);
  await act();
  return gateways.flatMap(({ requests }, index) => requests.slice(before[index]));
}

describe("calls that begin in one turn", () => {
  test("share one request to each endpoint, and so do their releases", async () => {
    const redlock = new Redlock({ endpoints: endpoints(), ttl, timeout });
    await (await redlock.acquire(newResource())).release(); // the scripts are known from here on
    const sent = await sentBy(async () => {
      const locks = await Promise.all(names(20).map((name) => redlock.acquire(name)));
      expect(await Promise.all(locks.map((lock) => lock.release()))).toEqual(Array(20).fill(true));
    });
    expect(sent.map(({ path }) => path)).toEqual(Array(6).fill("/pipeline"));
  });

  test("are reported once for each request, where any of its calls has a hook", async () => {
    const told: number[] = [];
    const redlock = new Redlock({ endpoints: endpoints(), ttl, timeout });
    await (await redlock.acquire(newResource())).release();
    const onEvent = (event: RedlockEvent) => event.type === "request" && told.push(event.commands);
    const sent = await sentBy(async () => {
      const hooks = names(7).map((name, index) => redlock.acquire(name, index > 2 ? { onEvent } : {}));
      const locks = await Promise.all(hooks);
      await until(() => told.length === 3, "the requests that acquire them");
      await Promise.all(locks.map((lock) => lock.release()));
      await until(() => told.length === 6, "the requests that release them");
    });
    expect(sent).toHaveLength(6);
    expect(told).toEqual(Array(6).fill(7));
  });
});

test.each<[string, RawReply]>([
  ["that answers 404", { status: 404, body: '{"error":"not found"}' }],
  ["that answers 405", { status: 405, body: "Method Not Allowed" }],
  ["that answers 501", { status: 501, body: "Not Implemented" }],
  [
    "that takes the path for a command",
    { status: 400, body: '{"error":"ERR unknown command \'pipeline\'"}' },
  ],
])(
  "an endpoint without /pipeline %s is refused with the option that it needs, and works with that",
  async (_, answer) => {
    const [target] = local.endpoints as [LocalEndpoint];
    const server = await startGateway(target, {
      answer: ({ path }) => (path === "/pipeline" ? answer : undefined),
    });
    const common = { url: server.url, token: target.token };
    const redlock = new Redlock({ endpoints: [common], ttl, timeout, wait: 0 });
    const errors = await Promise.all(names(2).map((name) => rejection(redlock.acquire(name))));
    for (const error of errors)
      expect(error).toMatchObject({ message: expect.stringMatching(/set pipelines: false/) });
    const told: number[] = [];
    const alone = new Redlock({
      endpoints: [{ ...common, pipelines: false }],
      ttl,
      timeout,
      onEvent: (event) => event.type === "request" && told.push(event.commands),
    });
    const before = server.requests.length;
    const locks = await Promise.all(names(8).map((name) => alone.acquire(name)));
    expect(told).toEqual(Array(8).fill(1));
    await Promise.all(locks.map((lock) => lock.release()));
    expect(server.requests.slice(before).some(({ path }) => path === "/pipeline")).toBe(false);
    await server.close();
  },
);

test("what waits for a free request until its timeout was never sent, so it costs nothing and owes no rollback", async () => {
  const [gateway] = gateways;
  const { passed, open } = gate();
  const { url, token } = { url: gateway!.url, token: local.endpoints[0]!.token };
  const endpoint = httpEndpoint({ url, token, maxRequests: 1 });
  const events: RedlockEvent[] = [];
  const redlock = new Redlock({
    endpoints: [endpoint],
    ttl,
    wait: 0,
    timeout,
    onEvent: (e) => events.push(e),
  });
  const [slow = "", late = ""] = names(2);
  const before = gateway!.requests.length;
  gateway!.before = () => passed;
  const first = redlock.acquire(slow);
  await until(() => gateway!.requests.length > before);
  const error = (await rejection(redlock.acquire(late, { timeout: 100 }))) as QuorumError;
  expect(error.message).toContain("not sent in time");
  expect(events.at(-1)).toMatchObject({ type: "notAcquired" });
  gateway!.before = () => undefined;
  open();
  await (await first).release();
  const sent = gateway!.requests.slice(before);
  expect(sent.filter(({ body }) => body.includes(late))).toEqual([]);
});
