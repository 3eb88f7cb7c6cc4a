import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { until } from "../support/until.ts";
import { bundleForNode, startInWorkerd } from "./bundle.ts";
import { startNode, startServer, untilClosed } from "./node-process.ts";
import { staged } from "./stage.ts";

const at = staged();

const env = () => ({ ...at.local.env(), BOT_URL: at.service.url, WEBHOOK_TOKEN: "secret" });

const startChat = async (more: Readonly<Record<string, string>> = {}) =>
  startServer(await bundleForNode("chat/server.ts"), { ...env(), ...more });

type Send = (path: string, init: object) => Promise<{ readonly status: number; json(): Promise<unknown> }>;

const platforms: Readonly<Record<string, () => Promise<Send>>> = {
  async Node() {
    const { url } = await startChat();
    return (path, init) => fetch(url + path, init);
  },
  async Workers() {
    const worker = await startInWorkerd("chat/worker.ts", { bindings: { ...env(), LIFETIME_MS: "3600000" } });
    return (path, init) => worker.dispatchFetch(`http://chat${path}`, init);
  },
};

const headers = { authorization: "Bearer secret" };
const delivering = (send: Send) => {
  const thread = randomUUID();
  const deliver = async (text: string) => {
    const body = JSON.stringify({ id: `${thread}:${text}`, thread, text });
    return (await send("/webhook", { method: "POST", headers, body })).status;
  };
  const drain = async () => (await send(`/threads/${thread}/drain`, { method: "POST", headers })).json();
  return { deliver, drain };
};

const answered = () => at.service.calls.map(({ body }) => body);

describe.each(Object.entries(platforms))("examples/chat on %s", (_, start) => {
  it("answers 202 at once, and the messages of a thread in order", async () => {
    at.service.rule = () => undefined;
    const { deliver, drain } = delivering(await start());
    for (const text of ["a", "b", "c", "b"]) expect(await deliver(text)).toBe(202);
    for (const text of ["a", "b", "c"]) {
      const call = await at.service.next();
      expect([call.body, at.service.calls.at(-1)]).toEqual([text, call]);
      call.answer(200);
    }
    await until(async () => (await deliver("a")) === 202 && answered().length === 3, "the repeated delivery");
    expect(await drain()).toEqual({ handled: 0, left: 0 });
  });

  it("drains a message at which the bot has failed", async () => {
    at.service.rule = () => 500;
    const { deliver, drain } = delivering(await start());
    expect(await deliver("a")).toBe(202);
    await at.service.next();
    at.service.rule = () => 200;
    await until(async () => ((await drain()) as { handled?: number }).handled === 1, "a turn that is free");
    expect(answered()).toEqual(["a", "a"]);
  });

  it("does not answer 202 if no database has the message", async () => {
    const { deliver } = delivering(await start());
    for (const { faults } of at.local.endpoints) faults.add({ fault: "status", status: 401 });
    const status = await deliver("a");
    for (const { faults } of at.local.endpoints) faults.clear();
    expect([status, ...answered()]).toEqual([503]);
  });

  it("takes no delivery without its token", async () => {
    const send = await start();
    expect((await send("/webhook", { method: "POST" })).status).toBe(401);
  });
});

it("examples/chat/server.ts leaves messages to the next process after SIGTERM", async () => {
  at.service.rule = () => undefined;
  const { server, url } = await startChat();
  const { deliver } = delivering((path, init) => fetch(url + path, init));
  for (const text of ["a", "b"]) expect(await deliver(text)).toBe(202);
  const call = await at.service.next();
  server.kill("SIGTERM");
  await untilClosed(url);
  call.answer(200);
  expect(await server.ended).toBe(0);
  expect(answered()).toEqual(["a"]);
});

it("examples/chat/deliver.mjs prints what its README says", async () => {
  const { url } = await startChat({ BOT_URL: "http://localhost:18788" });
  const program = startNode(["examples/chat/deliver.mjs"], {
    WEBHOOK_URL: url,
    WEBHOOK_TOKEN: "secret",
    BOT_PORT: "18788",
  });
  expect(await program.ended).toBe(0);
  const lines = program.output().trimEnd().split("\n");
  const of = (what: string) =>
    lines.filter((line) => line.startsWith(what)).map((line) => line.split(" ").at(-1));
  expect(of("delivered, 202:")).toEqual(["one", "two", "three", "two"]);
  expect(lines.filter((line) => line.startsWith("the bot"))).toEqual(
    ["one", "two", "three"].flatMap((text) => [`the bot begins:   ${text}`, `the bot answered: ${text}`]),
  );
  expect(lines.indexOf("delivered, 202:   three")).toBeLessThan(lines.indexOf("the bot answered: one"));
});
