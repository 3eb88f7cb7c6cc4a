import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/until.ts";
import { bundleForNode, startInWorkerd } from "./bundle.ts";
import { startNode, startServer, untilClosed } from "./node-process.ts";
import { staged } from "./stage.ts";

const at = staged();

const env = () => ({ ...at.local.env(), BOT_URL: at.service.url, WEBHOOK_TOKEN: "secret" });

const startChat = async (more: Readonly<Record<string, string>> = {}) =>
  startServer(await bundleForNode("chat/server.ts"), { ...env(), ...more });

/** By platform: starts the webhook, and returns its address. */
const platforms: Readonly<Record<string, (more?: Readonly<Record<string, string>>) => Promise<string>>> = {
  Node: async (more) => (await startChat(more)).url,
  async Workers(more) {
    const bindings = { ...env(), LIFETIME_MS: "3600000", ...more };
    return (await (await startInWorkerd("chat/worker.ts", { bindings })).ready).origin;
  },
};

const headers = { authorization: "Bearer secret" };
const delivering = (url: string) => {
  const thread = randomUUID();
  const deliver = async (text: string) => {
    const body = JSON.stringify({ id: `${thread}:${text}`, thread, text });
    return (await fetch(`${url}/webhook`, { method: "POST", headers, body })).status;
  };
  const drain = async () =>
    (await fetch(`${url}/threads/${thread}/drain`, { method: "POST", headers })).json();
  return { deliver, drain };
};

const answered = () => at.service.calls.map(({ body }) => body);

describe.each(Object.entries(platforms))("examples/chat on %s", (_, start) => {
  it("answers 202 at once, and the messages of a thread in order: deliver.mjs prints what its README says", async () => {
    const port = `${await freePort()}`;
    const program = startNode(["examples/chat/deliver.mjs"], {
      WEBHOOK_URL: await start({ BOT_URL: `http://localhost:${port}` }),
      WEBHOOK_TOKEN: "secret",
      BOT_PORT: port,
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

  it("drains a message at which the bot has failed", async () => {
    at.service.rule = () => 500;
    const { deliver, drain } = delivering(await start());
    expect(await deliver("a")).toBe(202);
    await at.service.next();
    at.service.rule = () => 200;
    await until(async () => ((await drain()) as { handled?: number }).handled === 1, "a turn that is free");
    expect(answered()).toEqual(["a", "a"]);
  });

  it("does not answer 202 if no database has the message, or without its token", async () => {
    const url = await start();
    const { deliver } = delivering(url);
    for (const { faults } of at.local.endpoints) faults.add({ fault: "status", status: 401 });
    const status = await deliver("a");
    for (const { faults } of at.local.endpoints) faults.clear();
    const unknown = await fetch(`${url}/webhook`, { method: "POST" });
    expect([status, unknown.status, ...answered()]).toEqual([503, 401]);
  });
});

it("examples/chat/server.ts leaves messages to the next process after SIGTERM", async () => {
  at.service.rule = () => undefined;
  const { server, url } = await startChat();
  const { deliver } = delivering(url);
  for (const text of ["a", "b"]) expect(await deliver(text)).toBe(202);
  const call = await at.service.next();
  server.kill("SIGTERM");
  await untilClosed(url);
  call.answer(200);
  expect(await server.ended).toBe(0);
  expect(answered()).toEqual(["a"]);
});
