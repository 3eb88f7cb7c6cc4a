import { afterEach, describe, expect, test, vi } from "vitest";
import { httpEndpoint } from "../../../src/endpoints/http.ts";
import type { EndpointError } from "../../../src/errors/errors.ts";
import { rejection } from "../../support/outcomes.ts";

// Requests to the global fetch, without a server; test/contract/endpoints has real ones.

const [url, token] = ["https://redis.example:8443", "a-secret-token"];
const most = 4 * 1024 * 1024;

/** Sends one command, which `fetch` answers. */
async function sendWith(answer: () => Response | Promise<Response>) {
  vi.stubGlobal(
    "fetch",
    vi.fn(async () => answer()),
  );
  const sending = httpEndpoint({ url, token }).send(["PING"], new AbortController().signal);
  return sending.then(
    (reply) => ({ reply, error: undefined }),
    (error: EndpointError) => ({ reply: undefined, error }),
  );
}

const answering = async (body: BodyInit | null, init: ResponseInit = {}) =>
  sendWith(() => new Response(body, init));

const encode = (text: string) => new TextEncoder().encode(text);

/** A body in pieces, without a length; `cancel` is called when its reader gives up. */
function streamed(pieces: readonly Uint8Array[]) {
  const left = [...pieces];
  const cancel = vi.fn();
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    const piece = left.shift();
    if (piece) controller.enqueue(piece);
    else controller.close();
  };
  return { stream: new ReadableStream<Uint8Array>({ pull, cancel }, { highWaterMark: 0 }), cancel };
}

afterEach(() => {
  vi.unstubAllGlobals();
});

test("a request is one POST, which follows no redirect and meets no cache", async () => {
  const { reply } = await sendWith(() => Response.json({ result: "OK" }));
  expect(reply).toBe("OK");
  expect(fetch).toHaveBeenCalledExactlyOnceWith(`${url}/`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: '["PING"]',
    redirect: "manual",
    next: { internal: true },
    signal: expect.any(AbortSignal),
  });
});

test("an error of fetch has no cause that quotes the bytes of a reply", async () => {
  const parser = Object.assign(new Error("parse"), { data: Buffer.from("a secret") });
  const { error } = await sendWith(() => Promise.reject(new TypeError("fetch failed", { cause: parser })));
  expect(error?.kind).toBe("network");
  expect(error?.cause).toBe(undefined);
});

describe("the size of a reply", () => {
  const ofLength = (length: number) => `{"result":"${"x".repeat(length - 13)}"}`;

  test("may be 4 MiB, with its length or without", async () => {
    for (const headers of [{}, { "content-length": `${most}` }] as const) {
      const { reply } = await answering(ofLength(most), { headers });
      expect(reply).toHaveLength(most - 13);
    }
  });

  test.each([
    ["without its length", {}],
    ["with its length", { "content-length": `${most + 1}` }],
    ["with a length that is none", { "content-length": "x" }],
    // The length is that of the compressed body; a few bytes may become gigabytes.
    ["compressed", { "content-length": "100", "content-encoding": "gzip" }],
  ])("may not be more: %s", async (_what, headers) => {
    const { stream, cancel } = streamed([ofLength(most), " "].map(encode));
    const { error } = await answering(stream, { headers: headers as Record<string, string> });
    expect(error).toMatchObject({ kind: "malformed", cause: expect.any(RangeError) });
    expect(cancel).toHaveBeenCalledOnce();
  });

  test("does not matter for what it says: it may arrive in pieces that divide a character", async () => {
    const pieces = Array.from(encode('{"result":"ü€"}'), (byte) => Uint8Array.of(byte));
    expect(await answering(streamed(pieces).stream)).toMatchObject({ reply: "ü€" });
    // The last character is incomplete.
    const cut = streamed([encode('{"result":"ü"}').slice(0, 12)]);
    expect((await answering(cut.stream)).error).toMatchObject({ kind: "malformed" });
  });
});

describe("httpEndpoint", () => {
  test("has the name and the dialect of its host, unless told otherwise", () => {
    const at = { url: "https://eu1.upstash.io", token };
    expect(httpEndpoint(at)).toMatchObject({ name: "eu1.upstash.io", dialect: "upstash" });
    const told = { name: "eu", dialect: "redis" } as const;
    expect(httpEndpoint({ ...at, ...told })).toMatchObject(told);
  });

  test.each(["", "with space", "line\nbreak", "ü", undefined, 7, "\u007f", "a\u0000"])(
    "refuses the token %j, and does not repeat it",
    (wrong) => {
      const make = () => httpEndpoint({ url, token: wrong as string });
      expect(make).toThrow(
        wrong
          ? "endpoint.token (of redis.example:8443) must be printable ASCII without quotes, spaces and line breaks"
          : "endpoint.token is missing (is UPSTASH_REDIS_REST_TOKEN set?)",
      );
      expect(make).toThrow(TypeError);
    },
  );
});

describe("a subscription", () => {
  const subscribe = (answer: () => Response) => {
    const fetching = vi.fn<typeof fetch>(async () => answer());
    vi.stubGlobal("fetch", fetching);
    const { signal } = new AbortController();
    const endpoint = httpEndpoint({ url, token, basePath: "/base/" });
    return { fetching, signal, stream: endpoint.subscribe!("a{b}/c", signal) };
  };

  test("is one POST with the token below the base path, which follows no redirect and meets no cache", async () => {
    const { fetching, signal, stream } = subscribe(() => new Response("data: subscribe,a,1\n\n"));
    expect(await new Response(await stream).text()).toBe("data: subscribe,a,1\n\n");
    expect(fetching).toHaveBeenCalledExactlyOnceWith(`${url}/base/subscribe/a%7Bb%7D%2Fc`, {
      method: "POST",
      body: null,
      headers: { authorization: `Bearer ${token}`, accept: "text/event-stream" },
      redirect: "manual",
      next: { internal: true },
      signal,
    });
  });

  test("that is refused is an error without the token, and its body is not left open", async () => {
    const { stream: body, cancel } = streamed([encode(token)]);
    const error = await rejection(subscribe(() => new Response(body, { status: 302 })).stream);
    expect(error).toMatchObject({ kind: "http", message: expect.stringContaining("no stream") });
    expect(String(error)).not.toContain(token);
    expect(cancel).toHaveBeenCalledOnce();
  });
});
