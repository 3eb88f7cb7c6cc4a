import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { answersOf, columnIn } from "../../scripts/conformance-columns.ts";
import { httpEndpoint, Redlock } from "../../src/index.ts";
import { readEvents } from "../support/event-reader.ts";
import { startWorkerd, token, type Workerd } from "../support/lock-servers.ts";
import { cases } from "../support/lock-servers-cases.ts";
import { until } from "../support/until.ts";

// Lock servers in workerd, with what nobody should send. Their contract is that of all endpoints: test/contract runs it on
// the engine `durable` in `npm run test:long`.

let workerd: Workerd;
beforeAll(async () => {
  workerd = await startWorkerd();
});
afterAll(() => workerd.worker.dispose());

const json = { authorization: `Bearer ${token}`, "content-type": "application/json" };

async function post(path: string, body: BodyInit | undefined, headers: Record<string, string> = json) {
  const method = body === undefined ? "GET" : "POST";
  const response = await fetch(`${workerd.url}${path}`, {
    method,
    headers,
    ...(body !== undefined && { body }),
  });
  return { status: response.status, body: (await response.json()) as unknown };
}

const ask = async (...command: (string | number)[]) => post("/", JSON.stringify(command));

test.each(Object.keys(cases))("through the binding: %s", async (title) => {
  const response = await fetch(`${workerd.url}/case`, { method: "POST", body: title });
  expect(await response.text()).toBe("passed");
});

describe("a request", () => {
  test.each<[what: string, path: string, headers: Record<string, string>]>([
    ["no token", "/", {}],
    ["another token", "/", { authorization: `Bearer ${token.slice(0, -1)}x` }],
    ["a longer token", "/pipeline", { authorization: `Bearer ${token}x` }],
    ["an empty token", "/", { authorization: "Bearer " }],
    ["a token in the URL", `/?_token=${token}`, {}],
    ["a token of basic authorization", "/subscribe/c", { authorization: `Basic ${btoa(`:${token}`)}` }],
  ])("with %s is refused, and changes nothing", async (_, path, headers) => {
    const { status, body } = await post(path, JSON.stringify(["SET", "of-nobody", "1"]), headers);
    expect([status, body]).toEqual([401, { error: expect.stringMatching(/^Unauthorized/) }]);
    expect(await ask("GET", "of-nobody")).toEqual({ status: 200, body: { result: null } });
  });

  test.each<[what: string, path: string, body: BodyInit | undefined, status: number, error: RegExp]>([
    ["that is no JSON", "/", "SET a b", 400, /JSON array/],
    ["that is a text", "/", '"PING"', 400, /JSON array/],
    ["that is empty", "/", "[]", 400, /JSON array/],
    ["with an object in it", "/", '["SET","a",{"b":1}]', 400, /JSON array/],
    ["with null in it", "/pipeline", '[["SET","a",null]]', 400, /JSON array/],
    ["with no command", "/pipeline", "[]", 400, /JSON array/],
    ["with a query", "/?x=1", '["PING"]', 400, /no query/],
    ["to another path", "/set/a/b", '["PING"]', 404, /has only/],
    ["by GET", "/", undefined, 405, /posted/],
    ["of 10 MB and more", "/", `["SET","a","${"x".repeat(10 * 1024 * 1024)}"]`, 413, /size/],
    ["of a value of 2 MB", "/", `["SET","a","${"x".repeat(2_000_000)}"]`, 400, /max value size/],
    ["of an unknown command", "/", '["FLUSHALL"]', 400, /lock server of redlock-edge, and no Redis/],
    ["of a name that every object has", "/", '["constructor"]', 400, /unknown command/],
    ["of an unknown script", "/", '["EVAL","return 1",0]', 400, /only the scripts of its own version/],
    ["of an unknown hash", "/", `["EVALSHA","${"0".repeat(40)}",0]`, 400, /^NOSCRIPT/],
    ["with more keys than words", "/", '["EVALSHA","0",5,"a"]', 400, /^NOSCRIPT|Number of keys/],
  ])("%s is refused", async (_, path, body, status, error) => {
    // A client that still writes when it is refused may see its connection break instead.
    const answer = await until(() => post(path, body).catch(() => undefined), "an answer");
    expect(answer).toEqual({ status, body: { error: expect.stringMatching(error) } });
    expect(await ask("GET", "a")).toEqual({ status: 200, body: { result: null } });
  });

  test("of our script with arguments that nobody sends changes nothing", async () => {
    const { cellScript } = await import("../../src/redis/cell.lua.ts");
    const key = "{odd}";
    for (const args of [
      [],
      ["acquire"],
      ["acquire", "v", "x", "1", "10"],
      ["extend", "v", 1, 9, "", "v", 0, 0],
    ]) {
      const { status, body } = await ask("EVALSHA", cellScript.sha.redis, 1, key, ...args);
      expect([200, 400]).toContain(status);
      expect(JSON.stringify(body)).not.toContain("at ");
    }
    expect(await ask("GET", key)).toEqual({ status: 200, body: { result: null } });
  });

  test("of 20 000 commands answers each, in their order", async () => {
    const commands = Array.from({ length: 20_000 }, (_, index) =>
      index % 2 ? ["GET", `deep-${index - 1}`] : ["SET", `deep-${index}`, String(index), "PX", 60_000],
    );
    const { status, body } = await post("/pipeline", JSON.stringify(commands));
    const results = (body as { result: unknown }[]).map(({ result }) => result);
    expect(status).toBe(200);
    expect(results).toEqual(commands.map((_, index) => (index % 2 ? String(index - 1) : "OK")));
  });
});

test("has what docs/platforms.md says", async () => {
  const page = readFileSync("docs/platforms.md", "utf8");
  const answers = await answersOf({ url: workerd.url, token, dialect: "redis-8.4" });
  expect(columnIn(page, "lock server")).toEqual(answers);
});

test("a server without a secret, or with a short one, answers nobody", async () => {
  const { lockServerApp } = await import("../../src/durable/index.ts");
  for (const tokens of [[], [undefined], ["short"], [token, ""]]) {
    const app = lockServerApp({ locks: () => expect.unreachable("it is not asked"), tokens: () => tokens });
    const request = new Request("https://locks.example", {
      method: "POST",
      headers: { authorization: `Bearer ${tokens[0]}` },
      body: '["PING"]',
    });
    const answer = await app.fetch(request, {});
    expect([answer.status, await answer.json()]).toEqual([
      500,
      { error: expect.stringMatching(/^the lock server needs a token of at least 32 characters/) },
    ]);
  }
});

test("texts arrive as they were sent", async () => {
  for (const text of ["", "naïve ☃ 💥", "a\0b", "\u2028", "x".repeat(300), '"quoted"\r\n']) {
    const key = `{${text}}`;
    expect(await ask("SET", key, text, "NX", "PX", 60_000)).toEqual({ status: 200, body: { result: "OK" } });
    expect(await ask("MGET", key)).toEqual({ status: 200, body: { result: [text] } });
  }
});

test("streams of clients that go away are forgotten, and those of others get messages", async () => {
  const controllers = Array.from({ length: 20 }, () => new AbortController());
  const open = ({ signal }: AbortController) =>
    fetch(`${workerd.url}/subscribe/left`, { method: "POST", headers: json, signal });
  const responses = await Promise.all(controllers.map(open));
  const readers = responses.map(({ body }) => readEvents(body));
  for (const reader of readers) expect(await reader.next()).toBe("data: subscribe,left,1");
  expect((await ask("PUBLISH", "left", "3:w")).body).toEqual({ result: 20 });
  for (const controller of controllers.slice(1)) controller.abort();
  await until(async () => {
    // The platform notices it when they are written to.
    await ask("PUBLISH", "left", "0:r");
    const { body } = await ask("PUBSUB", "NUMSUB", "left");
    return JSON.stringify(body) === '{"result":["left",1]}';
  }, "the end of the streams");
  expect(await readers[0]!.next()).toBe("data: message,left,3:w");
  controllers[0]!.abort();
});

test("5 000 locks at once", { timeout: 60_000 }, async () => {
  const endpoint = httpEndpoint({ url: workerd.url, token, dialect: "redis-8.4" });
  const redlock = new Redlock({ endpoints: [endpoint], timeout: 30_000 });
  const names = Array.from({ length: 5_000 }, (_, index) => `many-${index}`);
  const locks = await Promise.all(names.map((name) => redlock.acquire(name)));
  const others = await Promise.all(names.slice(0, 500).map((name) => redlock.tryAcquire(name)));
  expect(others.every((other) => other === null)).toBe(true);
  const released = await Promise.all(locks.map((lock) => lock.release()));
  expect(released.every(Boolean)).toBe(true);
});
