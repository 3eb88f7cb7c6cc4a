import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cellScript } from "../../src/redis/cell.lua.ts";
import { readEvents } from "../../test/support/event-reader.ts";
import { startWorkerd, token, type Workerd } from "../../test/support/lock-servers.ts";
import { until } from "../../test/support/until.ts";
import { durableEndpoint, type LockServerOptions, lockServerApp } from "../src/index.ts";
import { namespaceOf, type Objects } from "./storage.ts";

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

test("through the binding, waiters are woken up, and their streams end", async () => {
  expect(await (await fetch(`${workerd.url}/binding`)).text()).toBe("passed");
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

  const large = "x".repeat(2_000_000);
  const claim = ["EVALSHA", sha, 3, "lock", "tombstone", "a", "claim", "t", 1, 9, 9, 5, 60_000, "", large];

  test.each<[what: string, path: string, body: BodyInit, status: number, error: RegExp]>([
    ["that is no JSON", "/", "SET a b", 400, /JSON array/],
    ["with an object in it", "/", '["SET","a",{"b":1}]', 400, /JSON array/],
    ["with null in it", "/pipeline", '[["SET","a",null]]', 400, /JSON array/],
    ["with a number beyond all numbers", "/", '["SET","a",1e999]', 400, /within ±2\^53/],
    ["with a number that JSON rounds", "/", '["SET","a",9007199254740993]', 400, /within ±2\^53/],
    ["with a query", "/?x=1", '["PING"]', 400, /no query/],
    ["to another path", "/set/a/b", '["PING"]', 404, /has only/],
    ["of 10 MB and more", "/", `["SET","a","${"x".repeat(10 * 1024 * 1024)}"]`, 413, /size/],
    ["of a value of 2 MB", "/", JSON.stringify(["SET", "a", large]), 400, /max value size/],
    ["of a script whose last write is too large", "/", JSON.stringify(claim), 400, /max value size/],
    ["of an unknown command", "/", '["FLUSHALL"]', 400, /lock server of redlock-edge, and no Redis/],
    ["of an unknown script", "/", '["EVAL","return 1",0]', 400, /only the scripts of its own version/],
    ["with a number of keys that is none", "/", `["EVALSHA","${sha}"," 1","a"]`, 400, /not an integer/],
    ["with more keys than words", "/", `["EVALSHA","${sha}",5,"a"]`, 400, /Number of keys/],
    [
      "of a script with text for a number",
      "/",
      `["EVALSHA","${sha}",1,"a","claim","v","x"]`,
      400,
      /no number/,
    ],
  ])("%s is refused, and changes nothing", async (_, path, body, status, error) => {
    // A client that still writes when it is refused may see its connection break instead.
    const answer = await until(() => post(path, body).catch(() => undefined), "an answer");
    expect(answer).toEqual({ status, body: { error: expect.stringMatching(error) } });
    expect(await ask("GET", "a")).toEqual({ status: 200, body: { result: null } });
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

  test("has text in UTF-8", async () => {
    const text = 'naïve ☃ 💥\0\u2028"quoted"\r\n';
    expect(await ask("SET", text, text)).toEqual({ status: 200, body: { result: "OK" } });
    expect(await ask("MGET", text)).toEqual({ status: 200, body: { result: [text] } });
  });
});

describe("the settings of a server", () => {
  const old = "the-old-token-of-lock-servers-here";

  /** What the server says to somebody who shows a token. */
  async function shown(bearer: string, tokens: (string | undefined)[], options: LockServerOptions = {}) {
    const jurisdiction = () => expect.fail("not here");
    const locks = () => ({ ...namespaceOf(new Map()), jurisdiction });
    const app = lockServerApp({ locks, tokens: () => tokens, ...options });
    const headers = { authorization: `Bearer ${bearer}` };
    const request = new Request("https://locks.example", { method: "POST", headers, body: '["PING"]' });
    const answer = await app.fetch(request, {});
    return [answer.status, ((await answer.json()) as { error?: string }).error];
  }

  test.each<[what: string, tokens: (string | undefined)[], error: RegExp, options?: LockServerOptions]>([
    ["no token", [], /^the lock server needs a token of at least 32 characters/],
    ["a short old one", [token, "short"], /^tokens\[1\] of the lock server needs at least 32 characters/],
    ["a line break at the end", [`${token}\n`], /^tokens\[0\] .* without a space or a line/],
    ["a letter that no header has", [`${token}☃`], /^tokens\[0\] .* characters of ASCII/],
    [
      "no such place",
      [token],
      /^the platform refuses the jurisdiction "eu": not here/,
      { jurisdiction: "eu" },
    ],
  ])("%s: it answers nobody, and says why", async (_, tokens, error, options) => {
    expect(await shown(token, tokens, options)).toEqual([500, expect.stringMatching(error)]);
  });

  test("an old token counts, and an empty one is absent", async () => {
    expect(await shown(old, [token, old])).toEqual([200, undefined]);
    expect(await shown(token, [token, ""])).toEqual([200, undefined]);
    expect(await shown(old, [token, ""])).toEqual([401, "Unauthorized: the token is wrong"]);
  });

  test("a body that says that it is too large is refused before it is read", async () => {
    const app = lockServerApp({ locks: () => namespaceOf(new Map()), tokens: () => [token] });
    const headers = { ...json, "content-length": String(11 * 1024 * 1024) };
    const request = new Request("https://locks.example", { method: "POST", headers, body: '["PING"]' });
    expect((await app.fetch(request, {})).status).toBe(413);
  });

  test("name and jurisdiction decide in which object its keys are, and a location does not", async () => {
    const objects: Objects = new Map();
    const locks = namespaceOf(objects);
    const { signal } = new AbortController();
    const claim = (server: LockServerOptions) =>
      durableEndpoint(locks, server).send(["SET", "held", "x", "NX"], signal);
    for (const server of [{}, { name: "b" }, { jurisdiction: "eu" }, { name: "b", jurisdiction: "eu" }]) {
      expect(await claim({ ...server, locationHint: "weur" })).toBe("OK");
      expect(await claim({ ...server, locationHint: "enam" })).toBeNull();
      expect(durableEndpoint(locks, server)).toBe(durableEndpoint(locks, server));
    }
    expect([...objects.keys()]).toEqual(["anywhere/locks", "anywhere/b", "eu/locks", "eu/b"]);
  });
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
  // The platform notices it when they are written to.
  await until(
    async () => JSON.stringify((await ask("PUBLISH", "left", "0:r")).body) === '{"result":1}',
    "the end of the streams",
  );
  expect(await readers[0]!.next()).toBe("data: message,left,3:w");
  controllers[0]!.abort();
});
