import { describe, expect, test } from "vitest";
import {
  captureResponse,
  responseCodec,
  type StoragePolicy,
  type StoredResponse,
} from "../../../src/http/stored.ts";

const text = (value: string) => new TextEncoder().encode(value);
const stored: StoredResponse = { status: 201, headers: { etag: '"1"' }, body: text("ünï") };
const policy: StoragePolicy = {
  omitHeaders: ["x-secret"],
  maxResponseBody: 4,
  store: () => true,
};

describe("the text of a stored response", () => {
  test.each<[what: string, StoredResponse, string]>([
    ["text", stored, 't201{"etag":"\\"1\\""}\nünï'],
    [
      "text with tabs and ends of lines",
      { ...stored, headers: {}, body: text("a\t\r\n") },
      "t201{}\na\t\r\n",
    ],
    ["an empty body", { status: 204, headers: {}, body: text("") }, "t204{}\n"],
    ["no body", { status: 599, headers: {}, body: undefined }, "n599{}\n"],
    ["what is no UTF-8", { status: 200, headers: {}, body: Uint8Array.of(255, 254) }, "b200{}\n//4="],
    ["a byte order mark", { status: 200, headers: {}, body: text("\ufeffx") }, "t200{}\n\ufeffx"],
    ["a line feed in it", { status: 200, headers: {}, body: text("{}\n{}\n") }, "t200{}\n{}\n{}\n"],
  ])("%s", (_what, response, expected) => {
    expect(responseCodec.encode(response)).toBe(expected);
    const read = responseCodec.decode(expected);
    expect({ ...read, body: read.body && [...read.body] }).toEqual({
      ...response,
      body: response.body && [...response.body],
    });
  });

  test.each([0, 8, 11, 12, 14, 31])("control character %i makes it base64", (code) => {
    const body = text(`a${String.fromCharCode(code)}`);
    expect(responseCodec.encode({ status: 200, headers: {}, body })).toBe(
      `b200{}\n${btoa(`a${String.fromCharCode(code)}`)}`,
    );
  });

  test.each(["xt200{}", "t200{} ", "t2000{}", "t20{}", "t199{}", "T200{}", "t200", " t200{}"])(
    "%j is none",
    (given) => {
      expect(() => responseCodec.decode(`${given}\n`)).toThrow(new TypeError("it is not a response"));
    },
  );
});

describe("what is stored of a response", () => {
  const capture = (response: Response, own: Partial<StoragePolicy> = {}) =>
    captureResponse(response, { ...policy, ...own });
  const withHeaders = (headers: HeadersInit, body: BodyInit | null = "body") =>
    new Response(body, { status: 202, headers });

  const ofOneMessage =
    "connection keep-alive te trailer upgrade via proxy-authenticate date age content-length content-range " +
    "server-timing x-response-time ratelimit-limit x-ratelimit-remaining x-request-id x-correlation-id " +
    "x-amzn-trace-id x-vercel-id traceparent traceresponse cf-ray set-cookie set-cookie2 www-authenticate " +
    "authentication-info access-control-allow-origin idempotent-body";
  test.each(ofOneMessage.split(" "))(
    "without %s, which belongs to one message, connection or client",
    async (name) => {
      const value = name === "content-length" ? "4" : "1";
      const response = withHeaders({ etag: '"1"', [name]: value }, text("body"));
      expect((await capture(response)).stored!.headers).toEqual({ etag: '"1"' });
    },
  );

  const others =
    "x-connection connections x-via date-of-birth age-limit content-lengths xratelimit x-request-ids tracestates " +
    "x-cf-ray set-cookie3 vary cache-control";
  test.each(others.split(" "))("with %s", async (name) => {
    const response = withHeaders({ [name]: "1" }, text("body"));
    expect((await capture(response)).stored!.headers).toEqual({ [name]: "1" });
  });

  test("of no body an empty one, and the response itself is sent", async () => {
    const response = withHeaders({}, null);
    const captured = await capture(response);
    expect(captured.response).toBe(response);
    expect(captured.stored).toEqual({ status: 202, headers: {}, body: new Uint8Array() });
  });

  test.each<[what: string, headers: HeadersInit, isStored: boolean]>([
    ["an event stream", { "content-type": "text/event-stream" }, false],
    ["an event stream with parameters", { "content-type": "Text/Event-Stream; charset=utf-8" }, false],
    ["no event stream", { "content-type": "text/event-streams" }, true],
    ["a type that only contains it", { "content-type": "x-text/event-stream" }, true],
    ["sent in chunks", { "transfer-encoding": "chunked" }, false],
    ["encoded", { "content-encoding": "br" }, false],
    ["encoded twice", { "content-encoding": "identity, gzip" }, false],
    ["encoded, but not really", { "content-encoding": "Identity" }, true],
    ["too long by its own word", { "content-length": "5" }, false],
    ["just short enough by its own word", { "content-length": "4" }, true],
  ])("the body where the response is %s", async (_what, headers, isStored) => {
    const response = withHeaders({ etag: '"1"', "content-type": "a/b", ...headers });
    const captured = await capture(response);
    expect(captured.stored!.body).toEqual(isStored ? text("body") : undefined);
    // A stream is sent as it is, before it has been read.
    expect(captured.response === response).toBe(!isStored);
    // The type describes a body.
    expect(Object.keys(captured.stored!.headers)).toEqual(isStored ? ["content-type", "etag"] : ["etag"]);
    expect(await captured.response.text()).toBe("body");
  });

  test("status and headers where the body turns out to be too long", async () => {
    const captured = await capture(withHeaders({ etag: '"1"' }, "bodies"));
    expect(captured.stored).toEqual({ status: 202, headers: { etag: '"1"' }, body: undefined });
    expect(await captured.response.text()).toBe("bodies");
  });

  test.each([200, 599])("a response of status %i", async (status) => {
    const { stored } = await capture(new Response(text("body"), { status }));
    expect(stored).toEqual({ status, headers: {}, body: text("body") });
  });

  test("nothing of one that the rule leaves out, or that could not be made again", async () => {
    const response = withHeaders({});
    expect(await capture(response, { store: () => false })).toEqual({ response });
    const failed = Response.error();
    expect(await capture(failed)).toEqual({ response: failed });
  });
});
