import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { keyOf } from "../../src/redis/keys.ts";
import { until } from "../support/until.ts";
import { bundleForNode } from "./bundle.ts";
import { type NodeProcess, startNode } from "./node-process.ts";
import { staged } from "./stage.ts";

const at = staged();

/** A running server. */
interface Server {
  readonly server: NodeProcess;
  request(path: string, init: RequestInit, apiKey?: string): Promise<Response>;
}

async function start(): Promise<Server> {
  const server = startNode([await bundleForNode("hono-node/server.ts")], {
    ...at.stage.local.env(),
    API_KEYS: JSON.stringify({ "key-of-acme": "acme", "key-of-globex": "globex" }),
    LEDGER_URL: at.service.url,
    PORT: "0",
  });
  const [, port] = await server.printed(/"port":(\d+)/);
  return {
    server,
    request(path, init, apiKey = "key-of-acme") {
      const headers = { authorization: `Bearer ${apiKey}`, ...init.headers };
      return fetch(`http://localhost:${port}${path}`, { ...init, headers });
    },
  };
}

const payment = (key: string, body = '{"amount":10}'): RequestInit => ({
  method: "POST",
  headers: { "idempotency-key": key },
  body,
});

describe("examples/hono-node", () => {
  it("pays once per key and account", async () => {
    const { request } = await start();
    const key = randomUUID();
    const first = await request("/payments", payment(key));
    expect([first.status, await first.text()]).toEqual([201, '{"call":1}']);
    const second = await request("/payments", payment(key));
    expect([second.status, await second.text()]).toEqual([201, '{"call":1}']);
    expect(second.headers.get("idempotent-replayed")).toBe("true");
    expect((await request("/payments", payment(key), "key-of-globex")).status).toBe(201);
    expect((await request("/payments", payment(key), "nobody's")).status).toBe(401);
    expect((await request("/payments", payment(key, '{"amount":11}'))).status).toBe(422);
    expect((await request("/payments", { method: "POST" })).status).toBe(400);
    expect(at.service.calls.map(({ body }) => body)).toEqual(['{"amount":10}', '{"amount":10}']);
  });

  it("answers open requests after SIGTERM, and exits", async () => {
    const { server, request } = await start();
    const key = randomUUID();
    at.service.rule = () => undefined;
    const answer = request("/payments", payment(key));
    const call = await at.service.next();
    server.kill("SIGTERM");
    await until(
      () =>
        request("/payments", { method: "POST" }).then(
          () => false,
          () => true,
        ),
      "the server to accept no more requests",
    );
    call.answer(201);
    expect((await answer).status).toBe(201);
    expect(await server.ended).toBe(0);
    expect(Math.min(...(await at.stage.recordTtls(key, "acme")))).toBeGreaterThan(60_000);
  });

  it("closes an account under a lock, one request at a time", async () => {
    const { request } = await start();
    at.service.rule = () => undefined;
    const first = request("/account", { method: "DELETE" });
    const call = await at.service.next();
    const held = keyOf("redlock", "lock", "account:acme");
    expect(await at.stage.each("EXISTS", held)).toContain(1);
    const requests = () => at.stage.local.endpoints.reduce((sum, { log }) => sum + log.requests, 0);
    const before = requests();
    const second = request("/account", { method: "DELETE" });
    await until(() => requests() > before, "the second request to try to acquire the lock");
    expect(at.service.calls).toHaveLength(1);
    call.answer(204, "");
    expect((await first).status).toBe(204);
    const next = await at.service.next();
    next.answer(204, "");
    expect((await second).status).toBe(204);
    const [earlier, later] = at.service.calls.map(({ path }) =>
      Number(new URL(path, at.service.url).searchParams.get("fence")),
    );
    expect(earlier).toBeGreaterThan(0);
    expect(later).toBeGreaterThan(earlier!);
  });
});
