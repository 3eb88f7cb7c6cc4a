import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  type AcquireOptions,
  EndpointError,
  type EndpointErrorKind,
  httpEndpoint,
  QuorumError,
  Redlock,
  type RedlockEvent,
  upstashEndpoint,
} from "../../../src/index.ts";
import { forceRelease } from "../../../src/inspect/index.ts";
import { beyondTests, patient } from "../../support/beyond-tests.ts";
import { sdkClient } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import { type RawReply, type RawServer, result, startRawServer } from "../../support/raw-server.ts";
import { trusted } from "../../support/trusted.ts";
import { forbidUnhandledRejections } from "../../support/unhandled.ts";

const json = (body: unknown, status = 200): RawReply => ({ status, body: JSON.stringify(body) });
const page = "<!DOCTYPE html><html><body><h1>OK</h1></body></html>";
const megabyte = `"${"x".repeat(1024 * 1024 - 2)}"`;

const foreign = "no answer of Upstash's REST API: is the URL right?";
const location = { location: "https://elsewhere.example/" };

/** Invalid answers, the kind of the error that each becomes, and what it says where that may help. */
const garbage: [string, RawReply, EndpointErrorKind, said?: string][] = [
  [
    "an HTML page with 200",
    { body: page, headers: { "content-type": "text/html" } },
    "malformed",
    `HTTP 200, ${foreign}`,
  ],
  // Of a gateway that is in front of a REST API.
  ["an HTML page with 502", { status: 502, body: page }, "http", "HTTP 502, no usable reply"],
  ["an HTML page with 400", { status: 400, body: page }, "malformed"],
  ["404", json({ error: "No such route" }, 404), "http", `HTTP 404, ${foreign}`],
  ["404 of something else", json({ ok: false }, 404), "http", `HTTP 404, ${foreign}`],
  // Not followed, so that the token is sent nowhere else.
  ["301", { status: 301, headers: location }, "http", `HTTP 301, ${foreign}`],
  ["a wrong token", json({ error: "Invalid token" }, 401), "http", "HTTP 401, Invalid token"],
  ["a wrong token, in plain text", { status: 401, body: "Unauthorized" }, "http"],
  ["204", { status: 204 }, "http"],
  ["201 with OK", json({ result: "OK" }, 201), "http"],
  [
    "429",
    json({ error: "ERR max requests limit exceeded" }, 429),
    "http",
    "HTTP 429, ERR max requests limit exceeded",
  ],
  ["500 with OK", json({ result: "OK" }, 500), "http"],
  ["an error with 400", json({ error: "ERR syntax error" }, 400), "redis"],
  ["an error with 200", json({ error: "ERR something" }), "redis"],
  ["an error beside a result", json({ result: "OK", error: "ERR something" }), "redis"],
  ["an error that is an object", json({ error: { message: "ERR" } }), "malformed"],
  ["JSON of something else", json({ ok: true }), "malformed", `HTTP 200, ${foreign}`],
  ["[]", json([]), "malformed"],
  ["null", json(null), "malformed"],
  ["a number", json(7), "malformed"],
  ["OK in quotes", json("OK"), "malformed"],
  ["bare OK", { body: "OK" }, "malformed"],
  ["an inherited result", { body: '{"__proto__":{"result":"OK"}}' }, "malformed"],
  ["half a reply", { body: '{"result":"O' }, "malformed"],
  ["ok in small letters", result("ok"), "malformed"],
  ["true", result(true), "malformed"],
  ["an object", result({ OK: "OK" }), "malformed"],
  ["5 MB without saying so", { body: megabyte, pieces: 5 }, "malformed"],
  ["a broken connection", "reset", "network"],
  ["a body that breaks off", { body: "{}", headers: { "content-length": "100" } }, "timeout"],
  ["silence", "hang", "timeout"],
];

/**
 * What the error of a client of `@upstash/redis` says of some of them. The client follows redirects, and does not show the
 * status: what is no JSON may also be a gateway's.
 */
const throughSdk: Record<string, string> = {
  "an HTML page with 200": "no usable reply",
  "an HTML page with 502": "no usable reply",
  "404 of something else": foreign,
  "an error that is an object": foreign,
  "JSON of something else": foreign,
  "[]": foreign,
  null: foreign,
  "a number": foreign,
  "OK in quotes": foreign,
  "a wrong token": "Invalid token",
  "a wrong token, in plain text": "Unauthorized",
};

describe("an endpoint with invalid answers", () => {
  forbidUnhandledRejections();
  let server: RawServer;
  let events: RedlockEvent[];
  let silent: boolean;
  beforeAll(async () => {
    server = await startRawServer(() => "reset");
  });
  beforeEach(() => {
    events = [];
    silent = false;
  });
  afterAll(() => server.close());

  const client = (options: AcquireOptions = {}) =>
    new Redlock({
      // It is known to release locks, so that claims are native.
      endpoints: [trusted(httpEndpoint({ url: server.url, token: "token", name: "odd" }))],
      onEvent: (event) => event.type !== "request" && events.push(event),
      // Short only if the endpoint is silent by intention.
      timeout: silent ? 60 : beyondTests,
      ttl: 30_000,
      wait: 0,
      ...options,
    });

  function expectKind(error: unknown, kind: EndpointErrorKind, said?: string): void {
    expect(error).toBeInstanceOf(QuorumError);
    const { votes } = error as QuorumError;
    expect(votes).toHaveLength(1);
    expect(votes[0]).toMatchObject({ endpoint: "odd", outcome: "error" });
    const { cause } = votes[0]!;
    expect(cause).toBeInstanceOf(EndpointError);
    expect(cause).toMatchObject({ code: "ENDPOINT_ERROR", endpoint: "odd", kind });
    expect(cause!.message.length).toBeLessThan(400);
    if (said !== undefined) expect(cause!.message).toBe(`odd: ${said}`);
  }

  test.each(garbage)("%s acquires nothing", async (_, reply, kind, said) => {
    server.answer = () => reply;
    silent = kind === "timeout";
    for (const options of [{}, { fencing: true }]) {
      events = [];
      expectKind(await rejection(client().acquire("resource", options)), kind, said);
      expect(events.filter(({ type }) => type === "endpointError")).toHaveLength(1);
      expect(events.map(({ type }) => type)).not.toContain("acquired");
      expect(events.map(({ type }) => type)).not.toContain("contended");
    }
    expectKind(await rejection(client().acquire(["a", "b"])), kind);
  });

  test.each(Object.entries(throughSdk))("%s acquires nothing through @upstash/redis", async (what, said) => {
    server.answer = () => garbage.find(([name]) => name === what)![1];
    for (const enableAutoPipelining of [true, false]) {
      const sdk = sdkClient({ url: server.url, token: "token" }, { retry: false, enableAutoPipelining });
      const redlock = new Redlock({
        ...patient,
        endpoints: [upstashEndpoint(sdk, { name: "odd" })],
        wait: 0,
      });
      const error = await rejection(redlock.acquire("resource"));
      const isRefusal = what.startsWith("a wrong token");
      expectKind(error, isRefusal ? "redis" : "malformed", said);
      expect((error as QuorumError).votes[0]!.cause!.permanent).toBe(isRefusal);
    }
  });

  test("null is contention for a plain acquire, and an error for everything else", async () => {
    server.answer = () => result(null);
    expect(await client().tryAcquire("resource")).toBeNull();
    expectKind(await rejection(client().acquire("resource", { fencing: true })), "malformed");
    expectKind(await rejection(forceRelease(client(), "resource")), "malformed");
    server.answer = () => result("OK");
    const lock = await client().acquire("resource");
    server.answer = () => result(null);
    expectKind(await rejection(lock.verify()), "malformed");
    expect(await lock.release()).toBeUndefined();
    expectKind(
      events.flatMap((event) => (event.type === "released" ? [event.error] : [])).at(-1),
      "malformed",
    );
  });

  test("a fence that is not a positive safe integer is an error", async () => {
    for (const fence of ["0", "1.5", "9007199254740993", "x", null, [7]]) {
      server.answer = ({ command }) => result([command[4 + Number(command[2])], fence]);
      const error = await rejection(client().acquire("resource", { fencing: true }));
      expectKind(error, "malformed");
    }
  });
});
