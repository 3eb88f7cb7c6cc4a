import { describe, expect, test } from "vitest";
import { memoryEndpoint } from "../../../local/src/memory/index.ts";
import { checkClient, checkProvider, type HttpRules, resolveRules } from "../../../src/http/options.ts";
import { Redlock } from "../../../src/index.ts";

const day = 86_400_000;
const resolve = (options: HttpRules = {}, webhook = false) =>
  resolveRules("withIdempotency", options, webhook);
const text = (value: string) => new TextEncoder().encode(value);

describe("the defaults", () => {
  test("of requests", () => {
    expect(resolve()).toMatchObject({
      webhook: false,
      header: "Idempotency-Key",
      required: true,
      failOpen: false,
      omitHeaders: [],
      maxRequestBody: undefined,
      maxResponseBody: 262_144,
      streams: "status",
      runs: { wait: 0, retention: day },
      onEvent: undefined,
    });
    expect(resolve().fingerprint).toBeTypeOf("function");
  });

  test("of webhooks", () => {
    expect(resolve({}, true)).toMatchObject({ webhook: true, runs: { wait: 2_000, retention: 7 * day } });
    expect(resolve({}, true).fingerprint).toBe(undefined);
  });

  test("are replaced by what is given", () => {
    const onEvent = () => undefined;
    const options: HttpRules = {
      header: "X-Key",
      required: false,
      failOpen: true,
      maxRequestBody: 0,
      maxResponseBody: 1,
      streams: "nothing",
      onEvent,
      wait: 5,
      retention: 50_000,
      lease: 40_000,
      maxAttempts: 3,
    };
    const {
      header,
      required,
      failOpen,
      maxRequestBody,
      maxResponseBody,
      streams,
      onEvent: hook,
      runs,
    } = resolve(options);
    expect({ header, required, failOpen, maxRequestBody, maxResponseBody, streams, onEvent: hook }).toEqual({
      header: "X-Key",
      required: false,
      failOpen: true,
      maxRequestBody: 0,
      maxResponseBody: 1,
      streams: "nothing",
      onEvent,
    });
    // Its events are those of each request.
    expect(runs).toEqual({ wait: 5, retention: 50_000, lease: 40_000, maxAttempts: 3 });
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

describe("names of headers", () => {
  test("are in lower case", () => {
    expect(resolve({ omitHeaders: ["Link", "X-Other"] }).omitHeaders).toEqual(["link", "x-other"]);
  });

  test.each<HttpRules>([
    { omitHeaders: ["no name"] },
    { omitHeaders: [""] },
    { header: "no name" },
    { header: "näme" },
    { header: "" },
  ])("%j is none", (options) => {
    expect(() => resolve(options)).toThrow(TypeError);
    expect(() => resolve(options)).toThrow(/^(omitHeaders|header) must be the name of a header, got "/);
  });
});

describe("methods", () => {
  const guarded = (options: HttpRules, webhook = false) =>
    ["GET", "HEAD", "OPTIONS", "TRACE", "POST", "PUT", "PATCH", "DELETE", "XGET", "GETX"].filter((method) =>
      resolve(options, webhook).guards(method),
    );

  test("are all that change something, those that are named, and for webhooks all", () => {
    expect(guarded({})).toEqual(["POST", "PUT", "PATCH", "DELETE", "XGET", "GETX"]);
    expect(guarded({ methods: ["get", "PATCH"] })).toEqual(["GET", "PATCH"]);
    expect(guarded({}, true)).toHaveLength(10);
    expect(() => resolve({ methods: ["POST"] }, true)).toThrow(RangeError);
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
    ["streams", { streams: "statuses" as never }, false],
    ["streams", { streams: "a status" as never }, false],
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

describe("what is made for each request", () => {
  test.each([
    ["redlock", checkClient, new Redlock({ endpoints: [memoryEndpoint()] })],
    ["provider", checkProvider, { verify: () => undefined }],
  ])("%s: a function passes, and an object only if it is one", (name, check, valid) => {
    for (const given of [valid, () => valid]) expect(() => check(given)).not.toThrow();
    for (const given of [{}, undefined, null, "text", { verify: 1 }]) {
      expect(() => check(given)).toThrow(TypeError);
      expect(() => check(given)).toThrow(name);
    }
  });
});
