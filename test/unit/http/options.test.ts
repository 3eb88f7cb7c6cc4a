import { describe, expect, test } from "vitest";
import { type HttpRules, resolveRules } from "../../../src/http/options.ts";

const day = 86_400_000;
const resolve = (options: HttpRules = {}, webhook = false) =>
  resolveRules("withIdempotency", options, webhook);
const text = (value: string) => new TextEncoder().encode(value);

test("a webhook waits for 2 s and is known for 7 days, a request does not wait and is known for one", () => {
  expect(resolve()).toMatchObject({ required: true, runs: { wait: 0, retention: day } });
  expect(resolve({}, true)).toMatchObject({
    fingerprint: undefined,
    runs: { wait: 2_000, retention: 7 * day },
  });
});

describe("the fingerprint", () => {
  const print = (request: Request, body = "body") =>
    new TextDecoder().decode(resolve().fingerprint!(request, text(body)) as Uint8Array);
  const request = (url: string, method = "POST") => new Request(url, { method });

  test("is of method, path with query, and body, and of nothing else", () => {
    expect(print(request("https://a.example/p/7?q=1#here"))).toBe("POST\n/p/7?q=1\nbody");
    expect(print(request("http://b.example:8080/p/7?q=1", "PUT"), "")).toBe("PUT\n/p/7?q=1\n");
  });

  test("may be left out, asked for, or computed otherwise", () => {
    const own = () => "own";
    expect(resolve({ fingerprint: false }).fingerprint).toBe(undefined);
    expect(resolve({ fingerprint: true }, true).fingerprint).toBe(resolve().fingerprint);
    expect(resolve({ fingerprint: own }, true).fingerprint).toBe(own);
  });
});

describe("which responses are stored", () => {
  const stored = (statuses: number[], webhook = false, options: HttpRules = {}) =>
    statuses.filter((status) => resolve(options, webhook).store(new Response(null, { status })));
  const statuses = [
    200, 201, 204, 299, 301, 304, 400, 401, 402, 403, 404, 407, 408, 409, 410, 422, 423, 424, 425, 426, 428,
    429, 430, 498, 499, 500, 503, 599,
  ];

  test("all that a retry would get again", () => {
    expect(stored(statuses)).toEqual([
      200, 201, 204, 299, 301, 304, 400, 402, 404, 410, 422, 424, 428, 430, 498,
    ]);
  });

  test("of webhooks, those that the sender takes for success", () => {
    expect(stored(statuses, true)).toEqual([200, 201, 204, 299]);
  });

  test("those that the option names", () => {
    expect(stored([200, 500], true, { store: ({ status }) => status === 500 })).toEqual([500]);
  });

  test.each<[string, unknown]>([
    ["a promise", (async () => false)()],
    ["nothing", undefined],
    ["a number", 0],
  ])("an option that returns %s is wrong", (_what, result) => {
    const { store } = resolve({ store: () => result as boolean });
    expect(() => store(new Response())).toThrow(/^the result of store .*a boolean/);
  });
});

describe("bounds", () => {
  test.each<[HttpRules, webhook: boolean]>([
    [{ maxRequestBody: 2 ** 31 }, false],
    [{ maxResponseBody: 0 }, false],
    [{ maxResponseBody: 483_616 }, false],
    [{ maxResponseBody: 1, maxResult: 32_770 }, false],
    [{ wait: 60_000 }, true],
    [{ wait: 60_001 }, false],
    [{ wait: 0 }, true],
  ])("%j, webhooks: %s", (options, webhook) => {
    expect(() => resolve(options, webhook)).not.toThrow();
  });

  test.each<[name: string, HttpRules, webhook: boolean]>([
    ["maxRequestBody", { maxRequestBody: 2 ** 31 + 1 }, false],
    ["maxRequestBody", { maxRequestBody: 0.5 }, false],
    ["maxResponseBody", { maxResponseBody: 483_617 }, false],
    ["maxResponseBody", { maxResponseBody: -1 }, false],
    ["maxResponseBody", { maxResponseBody: 2, maxResult: 32_770 }, false],
    ["wait", { wait: 60_001 }, true],
    ["failOpen", { failOpen: true }, true],
    ["retention", { retention: 20_000, lease: 30_000 }, false],
  ])("%s in %j is refused, webhooks: %s", (name, options, webhook) => {
    expect(() => resolve(options, webhook)).toThrow(RangeError);
    expect(() => resolve(options, webhook)).toThrow(name);
  });

  test("of the body that is stored follow those of the result", () => {
    expect(resolve({ maxResult: 100_001 }).maxResponseBody).toBe(50_000 - 16_384);
    expect(resolve({ maxResult: 2_000_000 }).maxResponseBody).toBe(262_144);
    expect(resolve({ maxResult: 1_000 }).maxResponseBody).toBe(0);
  });
});
