import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cellScript } from "../../src/redis/cell.lua.ts";
import { readEvents } from "../../test/support/event-reader.ts";
import { startWorkerd, token, type Workerd } from "../../test/support/lock-servers.ts";
import { until } from "../../test/support/until.ts";
import { lockServerApp } from "../src/index.ts";
import { cases } from "./cases.ts";
import { namespaceOf } from "./storage.ts";

// Lock servers in workerd, with what nobody should send. Their contract is that of all endpoints: test/contract runs it on
// the engine `durable` in `npm run test:long`.

let workerd: Workerd;
beforeAll(async () => {
  workerd = await startWorkerd();
});
afterAll(() => workerd.worker.dispose());

const sha = cellScript.sha.redis;
const json = { authorization: `Bearer ${token}`, "content-type": "application/json" };

async function post(path: string, body: BodyInit, headers: Record<string, string> = json) {
  const response = await fetch(`${workerd.url}${path}`, { method: "POST", headers, body });
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
    ["a token in the URL", `/?_token=${token}`, {}],
    ["a token of basic authorization", "/subscribe/c", { authorization: `Basic ${btoa(`:${token}`)}` }],
  ])("with %s is refused, and changes nothing", async (_, path, headers) => {
    const { status, body } = await post(path, JSON.stringify(["SET", "of-nobody", "1"]), headers);
    expect([status, body]).toEqual([401, { error: expect.stringMatching(/^Unauthorized/) }]);
    expect(await ask("GET", "of-nobody")).toEqual({ status: 200, body: { result: null } });
  });

  test.each<[what: string, path: string, body: BodyInit, status: number, error: RegExp]>([
    ["that is no JSON", "/", "SET a b", 400, /JSON array/],
    ["with an object in it", "/", '["SET","a",{"b":1}]', 400, /JSON array/],
    ["with null in it", "/pipeline", '[["SET","a",null]]', 400, /JSON array/],
    ["with a number beyond all numbers", "/", '["SET","a",1e999]', 400, /within ±2\^53/],
    ["with a number that JSON rounds", "/", '["SET","a",9007199254740993]', 400, /within ±2\^53/],
    ["with a query", "/?x=1", '["PING"]', 400, /no query/],
    ["to another path", "/set/a/b", '["PING"]', 404, /has only/],
    ["of 10 MB and more", "/", `["SET","a","${"x".repeat(10 * 1024 * 1024)}"]`, 413, /size/],
    ["of a value of 2 MB", "/", `["SET","a","${"x".repeat(2_000_000)}"]`, 400, /max value size/],
    ["of an unknown command", "/", '["FLUSHALL"]', 400, /lock server of redlock-edge, and no Redis/],
    ["of an unknown script", "/", '["EVAL","return 1",0]', 400, /only the scripts of its own version/],
    ["with a number of keys that is none", "/", `["EVALSHA","${sha}"," 1","a"]`, 400, /not an integer/],
    ["with more keys than words", "/", '["EVALSHA","0",5,"a"]', 400, /^NOSCRIPT|Number of keys/],
  ])("%s is refused", async (_, path, body, status, error) => {
    // A client that still writes when it is refused may see its connection break instead.
    const answer = await until(() => post(path, body).catch(() => undefined), "an answer");
    expect(answer).toEqual({ status, body: { error: expect.stringMatching(error) } });
    expect(await ask("GET", "a")).toEqual({ status: 200, body: { result: null } });
  });

  test("of our script with arguments that nobody sends changes nothing", async () => {
    const key = "{odd}";
    for (const args of [
      [],
      ["claim"],
      ["claim", "v", "x", "1", "10"],
      ["keep", "v", 9, 10, 0, 0, 0, "v", "v"],
    ]) {
      const { status, body } = await ask("EVALSHA", sha, 1, key, ...args);
      expect([200, 400]).toContain(status);
      expect(JSON.stringify(body)).not.toContain("at ");
    }
    expect(await ask("GET", key)).toEqual({ status: 200, body: { result: null } });
  });

  test.each(["HEAD", "GET", "PUT", "DELETE", "PATCH", "OPTIONS"])(
    "by %s is refused, and opens no stream",
    async (method) => {
      for (const path of ["/", "/pipeline", "/subscribe/by-method"]) {
        const { status } = await fetch(`${workerd.url}${path}`, { method, headers: json });
        expect([path, status]).toEqual([path, 405]);
      }
      expect((await ask("PUBSUB", "NUMSUB", "by-method")).body).toEqual({ result: ["by-method", 0] });
    },
  );
});

describe("the tokens of a server", () => {
  const old = "the-old-token-of-lock-servers-here";

  /** What the server says to somebody who shows a token. */
  async function shown(bearer: string, tokens: (string | undefined)[]) {
    const app = lockServerApp({ locks: () => namespaceOf(new Map()), tokens: () => tokens });
    const headers = { authorization: `Bearer ${bearer}` };
    const request = new Request("https://locks.example", { method: "POST", headers, body: '["PING"]' });
    const answer = await app.fetch(request, {});
    return [answer.status, ((await answer.json()) as { error?: string }).error];
  }

  test.each<[what: string, tokens: (string | undefined)[], error: RegExp]>([
    ["none", [], /^the lock server needs a token of at least 32 characters/],
    ["a short old one", [token, "short"], /^tokens\[1\] of the lock server needs at least 32 characters/],
    ["a line break at the end", [`${token}\n`], /^tokens\[0\] .* without a space or a line/],
    ["a letter that no header has", [`${token}☃`], /^tokens\[0\] .* characters of ASCII/],
  ])("%s: it answers nobody, and says why", async (_, tokens, error) => {
    expect(await shown(token, tokens)).toEqual([500, expect.stringMatching(error)]);
  });

  test("an old one counts, and an empty one is absent", async () => {
    expect(await shown(old, [token, old])).toEqual([200, undefined]);
    expect(await shown(token, [token, ""])).toEqual([200, undefined]);
    expect(await shown(old, [token, ""])).toEqual([401, "Unauthorized: the token is wrong"]);
  });
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
