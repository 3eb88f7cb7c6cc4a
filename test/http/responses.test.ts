import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EndpointError } from "../../src/errors/errors.ts";
import type { HttpOptions } from "../../src/http/index.ts";
import { responseCodec, type StoredResponse } from "../../src/http/stored.ts";
import { freshKey } from "../support/fresh-key.ts";
import { clientOf, recordsOf } from "../support/stores.ts";
import { delivery, type Handler, opened, post, problemIn, provider, seen, stands } from "./stand.ts";

const everyByte = Uint8Array.from({ length: 256 }, (_, value) => value);
const text = (value: string) => new TextEncoder().encode(value);

describe("the stored form of a response", () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const body = fc.oneof(fc.uint8Array(), fc.string({ unit: "grapheme" }).map(text), fc.constant(undefined));
  const headers = fc.dictionary(fc.stringMatching(/^[a-z][a-z-]{0,10}$/), fc.string());

  test(`is read as it was written (seed ${seed})`, () => {
    fc.assert(
      fc.property(fc.integer({ min: 200, max: 599 }), headers, body, (status, headers, body) => {
        const read = responseCodec.decode(responseCodec.encode({ status, headers, body }));
        expect(read.status).toBe(status);
        expect(read.headers).toEqual({ ...headers });
        expect(read.body && [...read.body]).toEqual(body && [...body]);
      }),
      { seed, numRuns: 500 },
    );
  });

  test.each<[StoredResponse, string]>([
    [{ status: 201, headers: { etag: '"1"' }, body: text("ünï") }, 't201{"etag":"\\"1\\""}\nünï'],
    [{ status: 200, headers: {}, body: text("\ufeff{}\r\n\t{}\n") }, "t200{}\n\ufeff{}\r\n\t{}\n"],
    [{ status: 204, headers: {}, body: text("") }, "t204{}\n"],
    [{ status: 599, headers: {}, body: undefined }, "n599{}\n"],
    [{ status: 200, headers: {}, body: Uint8Array.of(255, 254) }, "b200{}\n//4="],
    [{ status: 200, headers: {}, body: text("a\u000b") }, "b200{}\nYQs="],
  ])("of %j is %j", (response, stored) => {
    expect(responseCodec.encode(response)).toBe(stored);
  });

  const heads = ["", "{}", "t199{}", "t600{}", "x200{}", " t200{}", "t200{} ", "t200[]", "t200{nonsense}"];
  test.each([...heads.map((head) => `${head}\n`), "t200{}", "b200{}\n*"])("%j is none", (stored) => {
    expect(() => responseCodec.decode(stored)).toThrow();
  });
});

describe.each(stands)("responses: %s", (_name, stand) => {
  const at = opened();

  const serving = (handler: Handler, options: Partial<HttpOptions> = {}) =>
    stand(handler, { redlock: clientOf(at.store).redlock, ...options });

  /** What the first request gets, and the second one from another replica, and how often the handler ran. */
  async function twice(handler: Handler, options: Partial<HttpOptions> = {}, key = freshKey()) {
    let runs = 0;
    const counted: Handler = (request, run) => {
      runs += 1;
      return handler(request, run);
    };
    const first = await seen(await serving(counted, options)(post(key)));
    return { first, again: await seen(await serving(counted, options)(post(key))), runs };
  }

  test.each([
    ["no body", null],
    ["every byte", everyByte],
    ["a byte order mark", text("\ufeffx")],
    ["just as many bytes as are stored", new Uint8Array(262_144).fill(0xab)],
  ])("%s comes back byte for byte", async (_what, body) => {
    const headers = { "content-type": "application/octet-stream" };
    const { first, again, runs } = await twice(() => new Response(body, { headers }));
    expect(Buffer.compare(first.bytes, body ?? new Uint8Array())).toBe(0);
    expect(Buffer.compare(again.bytes, first.bytes)).toBe(0);
    expect(again.headers).toEqual({ ...headers, "idempotent-replayed": "true" });
    expect(runs).toBe(1);
  });

  test.each<[what: string, status: number, body: string | null]>([
    ["a 200", 200, null],
    ["a 200 with an empty text", 200, ""],
    ["a 303", 303, null],
    ["a 204", 204, null],
    ["a 304", 304, null],
  ])("%s that is empty has no body when it is replayed", async (_what, status, body) => {
    const handler = () => new Response(body, { status, headers: { etag: '"1"' } });
    const fetch = serving(handler);
    const key = freshKey();
    expect((await fetch(post(key))).status).toBe(status);
    const again = await fetch(post(key));
    // @hono/node-server gives every body a content type, even a body without bytes.
    expect([again.status, again.body]).toEqual([status, null]);
    expect([...again.headers]).toEqual([...handler().headers, ["idempotent-replayed", "true"]].sort());
  });

  /** A response with all of these headers. */
  const named = (names: string, value: string) =>
    Object.fromEntries(
      names
        .trim()
        .split(/\s+/)
        .map((name) => [name, value]),
    );
  const replayed = {
    ...named(
      `content-type link vary cache-control x-connection connections x-via date-of-birth age-limit content-lengths
      xratelimit x-request-ids tracestates x-cf-ray set-cookie3`,
      "any/thing",
    ),
    etag: '"1"',
    location: "/orders/7",
  };
  const ofOneMessage = named(
    `keep-alive te trailer upgrade via proxy-authenticate date age content-range server-timing x-response-time
    ratelimit-limit x-ratelimit-remaining x-request-id x-correlation-id x-amzn-trace-id x-vercel-id traceparent
    traceresponse cf-ray set-cookie set-cookie2 www-authenticate authentication-info access-control-allow-origin
    idempotent-body`,
    "secret",
  );
  const everyHeader = { ...replayed, ...ofOneMessage };

  test("all headers are replayed but those of one message, connection or client", async () => {
    const key = freshKey();
    const { first, again } = await twice(() => new Response("x", { headers: everyHeader }), {}, key);
    expect(first.headers).toEqual(everyHeader);
    expect(again.headers).toEqual({ ...replayed, "idempotent-replayed": "true" });
    expect(JSON.stringify(await recordsOf(at.store, key, [], "http"))).not.toContain("secret");
  });

  test("headers that omitHeaders or the connection names are not replayed", async () => {
    const headers = { ...everyHeader, connection: "x-hop, close", "x-hop": "1" };
    const { again } = await twice(() => new Response("x", { headers }), { omitHeaders: ["Link", "x-via"] });
    expect(again.headers).toMatchObject({ vary: "any/thing" });
    for (const name of ["link", "x-via", "x-hop", "connection"])
      expect(again.headers).not.toHaveProperty(name);
  });

  /** A body in pieces; `progress` shows how much of it was read. */
  function pieces(count: number, size: number) {
    const progress = { pulled: 0, cancelled: false };
    const stream = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          if (progress.pulled === count) return controller.close();
          progress.pulled += 1;
          controller.enqueue(new Uint8Array(size).fill(progress.pulled));
        },
        cancel() {
          progress.cancelled = true;
        },
      },
      { highWaterMark: 0 },
    );
    return { stream, progress };
  }

  test.each<[what: string, headers: Record<string, string>, size?: number]>([
    ["larger than the cap", {}, 1_000],
    ["an event stream", { "content-type": "text/event-stream" }],
    ["an event stream with parameters", { "content-type": "Text/Event-Stream; charset=utf-8" }],
    ["sent in chunks", { "transfer-encoding": "chunked" }],
    ["encoded", { "content-encoding": "br" }],
    ["encoded twice", { "content-encoding": "identity, gzip" }],
    ["too long by its own word", { "content-length": "20001" }],
  ])(
    "a response that is %s passes whole; of it status and headers are stored",
    async (_what, headers, size = 10) => {
      const handler: Handler = () =>
        new Response(pieces(50, size).stream, {
          status: 201,
          headers: { etag: '"1"', "content-type": "a/b", "content-digest": "sha-256=:eA==:", ...headers },
        });
      const { first, again, runs } = await twice(handler, { maxResponseBody: 20_000 });
      expect(first.bytes).toHaveLength(50 * size);
      expect([...new Set(first.bytes)]).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
      expect(first.headers).toMatchObject({ etag: '"1"', ...headers });
      expect(again).toMatchObject({ status: 201, bytes: new Uint8Array() });
      expect(again.headers).toEqual({
        etag: '"1"',
        "idempotent-body": "omitted",
        "idempotent-replayed": "true",
      });
      expect(runs).toBe(1);
    },
  );

  test("a stream of anything but bytes is an error, and the key is free", async () => {
    const key = freshKey();
    const stream = new ReadableStream({ start: (controller) => controller.enqueue(Uint16Array.of(300)) });
    const fetch = serving(() => new Response(stream));
    expect(await fetch(post(key)).then(({ status }) => status, String)).toSatisfy(
      (seen) => seen === 500 || /must be a stream of bytes/.test(seen),
    );
    expect(await recordsOf(at.store, key, [], "http")).toEqual([null]);
  });

  test("of a part of a representation nothing is stored, whatever the store option says", async () => {
    const headers = { "content-range": "bytes 0-4/10" };
    const handler: Handler = () => new Response("12345", { status: 206, headers });
    const { first, again, runs } = await twice(handler, { store: () => true });
    for (const answer of [first, again]) expect(answer).toMatchObject({ status: 206, headers });
    expect([runs, again.headers]).toEqual([
      2,
      expect.not.objectContaining({ "idempotent-replayed": "true" }),
    ]);
  });

  test("an endless stream is sent at once, and read no faster than the client reads it", async () => {
    const { stream, progress } = pieces(Infinity, 10);
    const fetch = serving(() => new Response(stream, { headers: { "content-type": "text/event-stream" } }));
    const response = await fetch(post());
    expect(progress.pulled).toBeLessThanOrEqual(1);
    const reader = response.body!.getReader();
    expect((await reader.read()).value).toHaveLength(10);
    await reader.cancel();
    expect(progress.cancelled).toBe(true);
  });

  /** Of all that is sent, what has more than so many bytes is refused for its size. */
  function refusingAbove(size: number) {
    const { redlock, links } = clientOf(at.store);
    for (const link of links) {
      link.fate = (command) =>
        JSON.stringify(command).length <= size
          ? "delivered"
          : {
              before() {
                throw new EndpointError(link.name, "http", "HTTP 413, no usable reply", { status: 413 });
              },
            };
    }
    return redlock;
  }

  test("a response that the store refuses for its size is handled once, and duplicates get 410", async () => {
    const key = freshKey();
    let runs = 0;
    const events: string[] = [];
    const handler: Handler = () => new Response(`${++runs}`.repeat(10_000));
    const onEvent = ({ type }: { type: string }) => events.push(type);
    const fetch = serving(handler, { redlock: refusingAbove(5_000), onEvent });
    expect((await (await fetch(post(key))).text()).length).toBe(10_000);
    for (let time = 0; time < 2; time += 1) {
      const response = await fetch(post(key));
      expect(response.headers.has("retry-after")).toBe(false);
      expect(await problemIn(response)).toEqual({ status: 410, code: "RESULT_UNAVAILABLE" });
    }
    expect(runs).toBe(1);
    expect(events).toEqual(["unstored", "omitted", "refused", "omitted", "refused"]);
  });

  test("a webhook's duplicate of it is 2xx, so that its sender stops", async () => {
    const id = freshKey();
    let runs = 0;
    const handler: Handler = () => new Response(`${++runs}`.repeat(10_000));
    const fetch = serving(handler, { provider, redlock: refusingAbove(5_000) });
    await fetch(delivery(id));
    const again = await seen(await fetch(delivery(id)));
    expect(again).toMatchObject({ status: 200, bytes: new Uint8Array() });
    expect(again.headers).toEqual({ "idempotent-body": "omitted", "idempotent-replayed": "true" });
    expect(runs).toBe(1);
  });

  test("a body that breaks off while it is read is a failure, and the key is free", async () => {
    const key = freshKey();
    let runs = 0;
    const broken = () =>
      new ReadableStream<Uint8Array>({
        pull(controller) {
          controller.error(new Error("broken"));
        },
      });
    const fetch = serving(() => new Response(++runs === 1 ? broken() : "whole"));
    const first = await fetch(post(key)).catch(() => undefined);
    expect(first === undefined || first.status === 500).toBe(true);
    expect(await (await fetch(post(key))).text()).toBe("whole");
  });
});
