import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type LocalEndpoints, start } from "../../../local/src/index.ts";
import { httpEndpoint, Redlock, upstashEndpoint } from "../../../src/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { newResource, sdkClient } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import type { RawServer } from "../../support/raw-server.ts";
import { startServerlessRedisHttp } from "../../support/serverless-redis-http.ts";

// Locks through serverless-redis-http, as far as its source tells: test/support/serverless-redis-http.ts.

let local: LocalEndpoints;
let gateway: RawServer;
beforeAll(async () => {
  local = await start({ count: 1, engine: "embedded", dialect: "redis" });
  gateway = await startServerlessRedisHttp(local.endpoints[0]);
});
afterAll(() => Promise.all([gateway.close(), local.close()]));

const clients = {
  httpEndpoint: (token: string) => httpEndpoint({ url: gateway.url, token }),
  upstashEndpoint: (token: string) => upstashEndpoint(sdkClient({ url: gateway.url, token })),
};

describe.each(Object.entries(clients))("through %s", (_, connect) => {
  const client = (token = local.endpoints[0].token) =>
    new Redlock({ ...patient, endpoints: [connect(token)], wait: 0 });

  test("locks are held, several in one request, and released", async () => {
    const redlock = client();
    const names = [newResource(), newResource()];
    const locks = await Promise.all(names.map((name) => redlock.acquire(name, { fencing: true })));
    await expect(client().acquire(names[0]!)).rejects.toMatchObject({ code: "LOCK_HELD" });
    expect(await Promise.all(locks.map((lock) => lock.release()))).toEqual([true, true]);
    expect(gateway.requests.some(({ path }) => path === "/pipeline")).toBe(true);
  });

  test("a wrong token is permanent", async () => {
    const error = await rejection(client("wrong").acquire(newResource()));
    expect(error).toMatchObject({
      cause: { permanent: true, message: expect.stringContaining("Invalid token") },
    });
  });
});
