import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { until } from "../support/until.ts";
import { bundleForNode } from "./bundle.ts";
import { startServer, untilClosed } from "./node-process.ts";
import { staged } from "./stage.ts";

const at = staged();

async function start() {
  const { server, url } = await startServer(await bundleForNode("hono-node/server.ts"), {
    ...at.local.env(),
    API_KEYS: '{"key-of-acme":"acme"}',
    LEDGER_URL: at.service.url,
  });
  const request = (method: string, path: string, headers: Record<string, string> = {}) =>
    fetch(url + path, { method, headers: { authorization: "Bearer key-of-acme", ...headers } });
  return { server, url, request };
}

it("examples/hono-node answers open requests after SIGTERM, and leaves no lease behind", async () => {
  const { server, url, request } = await start();
  const key = { "idempotency-key": randomUUID() };
  at.service.rule = () => undefined;
  const answer = request("POST", "/payments", key);
  const call = await at.service.next();
  server.kill("SIGTERM");
  await untilClosed(url);
  call.answer(201);
  expect((await answer).status).toBe(201);
  expect(await server.ended).toBe(0);
  const replayed = await (await start()).request("POST", "/payments", key);
  expect([replayed.status, replayed.headers.get("idempotent-replayed")]).toEqual([201, "true"]);
});

it("examples/hono-node closes an account under a lock, one request at a time", async () => {
  const { request } = await start();
  at.service.rule = () => undefined;
  const first = request("DELETE", "/account");
  const call = await at.service.next();
  const requests = () => at.local.endpoints.reduce((sum, { log }) => sum + log.requests, 0);
  const before = requests();
  const second = request("DELETE", "/account");
  await until(() => requests() > before, "the second request to try to acquire the lock");
  expect(at.service.calls).toHaveLength(1);
  call.answer(204, "");
  expect((await first).status).toBe(204);
  (await at.service.next()).answer(204, "");
  expect((await second).status).toBe(204);
  const fenceOf = (path: string) => Number(new URL(path, at.service.url).searchParams.get("fence"));
  const [earlier = 0, later] = at.service.calls.map(({ path }) => fenceOf(path));
  expect(later).toBeGreaterThan(earlier);
});
