import { describe, expect, test } from "vitest";
import { type HttpOptions, jsonFingerprint } from "../../src/http/index.ts";
import { parseKey } from "../../src/http/serve.ts";
import { LeaseLostError } from "../../src/idempotency/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { gate } from "../support/link.ts";
import { ownTime } from "../support/own-time.ts";
import { clientOf, recordsOf } from "../support/stores.ts";
import { until } from "../support/until.ts";
import { delivery, type Handler, opened, post, problemIn, provider, slowHandler, stands } from "./stand.ts";

describe("parseKey", () => {
  test.each([
    ["abc", "abc"],
    ['"abc"', "abc"],
    ['"a b"', "a b"],
    ['"a\\"b\\\\c"', 'a"b\\c'],
    ['a"b', 'a"b'],
    ["a\\b", "a\\b"],
    ['"a,b"', "a,b"],
    ["~".repeat(255), "~".repeat(255)],
    // The parameters of RFC 8941 do not count; a bare key has none.
    ['"abc";a=1', "abc"],
    ['"a;b"; a;*b-.c=?1;c="x;\\"y";d=-1.25;e=:YWJj:;f=tok/en', "a;b"],
    ["abc;a=1", "abc;a=1"],
  ])("%j names %j", (header, key) => {
    expect(parseKey(header)).toBe(key);
  });

  const malformed = ['""a"', '""', '"', '"a', '"a"b', '"a\\b"'];
  const parameters = [" ;p", ";", ";P=1", ";p=", ';p="b', ";p=1 ", ";p=1;", ";p=ü", ';p=1, "b"'];
  const bare = ["", "a,b", "a, b", "~".repeat(256), "a\u0000", "a\u007f", "\u0080", "ü", "💶"];
  const ofBugs = ["null", "[object Object]"];
  test.each([...malformed, ...parameters.map((each) => `"a"${each}`), ...bare, ...ofBugs])(
    "%j names nothing",
    (header) => {
      expect(parseKey(header)).toBe(undefined);
    },
  );
});

describe.each(stands)("requests: %s", (_name, stand) => {
  const at = opened();

  const serving = (handler: Handler, options: Partial<HttpOptions> = {}) =>
    stand(handler, { redlock: clientOf(at.store).redlock, ...options });

  const form = new FormData();
  form.set("amount", "10");
  test.each<[string, BodyInit | null, (request: Request) => Promise<unknown>, unknown]>([
    [
      "arrayBuffer()",
      new Uint8Array([0, 255]),
      async (r) => [...new Uint8Array(await r.arrayBuffer())],
      [0, 255],
    ],
    ["formData()", form, async (request) => [...(await request.formData())], [["amount", "10"]]],
    ["text() of no body", null, async (request) => [request.body, await request.text()], [null, ""]],
  ])("the handler can read the body by %s", async (_how, body, read, value) => {
    let got: unknown;
    const fetch = serving(async (request) => {
      got = await read(request);
      return new Response();
    });
    expect((await fetch(post(undefined, { body }))).status).toBe(200);
    expect(got).toEqual(value);
  });

  test("the handler gets method, address, headers and body as they came", async () => {
    const fetch = serving(async (request) => {
      const { method, url, headers } = request;
      return Response.json([method, url, headers.get("x-a"), await request.text()]);
    });
    const response = await fetch(post("k 1", { method: "PUT", path: "/p?q=%20#h", headers: { "x-a": "1" } }));
    expect(await response.json()).toEqual(["PUT", "https://api.example/p?q=%20#h", "1", '{"amount":10}']);
  });

  test("a body above the cap is 413, with or without Content-Length, and no Redis command", async () => {
    const client = clientOf(at.store);
    const fetch = stand(() => expect.unreachable(), { redlock: client.redlock, maxRequestBody: 10 });
    const tooLong = { status: 413, code: "BODY_TOO_LARGE" };
    const said = post(undefined, { body: "x", headers: { "content-length": "11" } });
    expect(await problemIn(await fetch(said))).toEqual(tooLong);
    let cancelled = false;
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(4)),
      cancel() {
        cancelled = true;
        throw new Error("the source's own");
      },
    });
    const silent = post(undefined, { body, duplex: "half" } as RequestInit);
    expect(await problemIn(await fetch(silent))).toEqual(tooLong);
    await until(() => cancelled);
    const hook = stand(() => expect.unreachable(), {
      redlock: client.redlock,
      provider,
      maxRequestBody: 10,
    });
    expect(await problemIn(await hook(delivery(freshKey())))).toEqual(tooLong);
    expect(client.links[0]!.sent).toEqual([]);
    expect(
      (await serving(() => new Response(), { maxRequestBody: 10 })(post(undefined, { body: "0123456789" })))
        .status,
    ).toBe(200);
  });

  test.each([
    ...["GET", "HEAD", "OPTIONS", "TRACE"].map((method) => [method, 2] as const),
    ...["POST", "PUT", "PATCH", "DELETE", "XGET", "GETX"].map((method) => [method, 1] as const),
  ])("two requests by %s with one key: the handler runs %d times", async (method, runs) => {
    let ran = 0;
    const fetch = serving(() => {
      ran += 1;
      return new Response(null, { status: 204 });
    });
    // No platform lets a program make a request by TRACE.
    const request = (key: string | null) =>
      Object.defineProperty(post(key, { body: null }), "method", { value: method });
    const key = freshKey();
    for (let time = 0; time < 2; time += 1) await fetch(request(key));
    expect(ran).toBe(runs);
    // A key is required where requests are handled once, and only there.
    expect((await fetch(request(null))).status).toBe(runs === 1 ? 400 : 204);
  });

  test.each<[HttpOptions["fingerprint"], webhook: boolean, status: number]>([
    [undefined, false, 422],
    [true, false, 422],
    [false, false, 200],
    [(_request, body) => body.subarray(0, 1), false, 200],
    [jsonFingerprint(), false, 422],
    [jsonFingerprint({ exclude: ["a"] }), false, 200],
    [undefined, true, 200],
    [true, true, 422],
  ])(
    "with the fingerprint %s, webhook: %s: the same key with another body is %i",
    async (fingerprint, webhook, status) => {
      const fetch = serving(() => new Response(), { fingerprint, ...(webhook && { provider }) });
      const key = freshKey();
      const send = (body: string) => fetch(webhook ? delivery(key, { body }) : post(key, { body }));
      expect((await send('{"a":1}')).status).toBe(200);
      expect((await send('{"a":2}')).status).toBe(status);
    },
  );

  test("a form that is sent again has another boundary, and is the same request", async () => {
    const fetch = serving(() => new Response("stored"));
    const sent = (fields: Record<string, string>, key: string, file = "content") => {
      const body = new FormData();
      for (const [name, value] of Object.entries(fields)) body.set(name, value);
      body.set("file", new Blob([file, new Uint8Array([0, 255])]), "a.bin");
      return fetch(post(key, { body }));
    };
    const key = freshKey();
    expect((await sent({ amount: "10" }, key)).status).toBe(200);
    expect((await sent({ amount: "10" }, key)).headers.get("idempotent-replayed")).toBe("true");
    expect((await sent({ amount: "11" }, key)).status).toBe(422);
    expect((await sent({ amount: "10", more: "1" }, key)).status).toBe(422);
    expect((await sent({ amount: "10" }, key, "other")).status).toBe(422);
  });

  test("a delivery may be as large as its sender documents, else 5 MiB", async () => {
    const fetch = serving(() => new Response(), { provider });
    const ofGitHub = await fetch(delivery(freshKey(), { body: JSON.stringify("x".repeat(6_000_000)) }));
    expect(ofGitHub.status).toBe(200);
    const { maxBody, ...undocumented } = provider;
    expect(maxBody).toBe(25 * 1024 * 1024);
    const other = serving(() => expect.unreachable(), { provider: undocumented });
    const tooLarge = await other(delivery(freshKey(), { body: "x".repeat(5_242_881) }));
    expect(await problemIn(tooLarge)).toEqual({ status: 413, code: "BODY_TOO_LARGE" });
  });

  test("another header can carry the key", async () => {
    let runs = 0;
    const fetch = serving(() => new Response(`${++runs}`), { header: "X-Request-Key" });
    const request = () => post(null, { headers: { "x-request-key": "other header" } });
    await fetch(request());
    expect(await (await fetch(request())).text()).toBe("1");
    expect((await fetch(post())).status).toBe(400);
  });

  test("a client that hangs up cuts nothing off, and the result is stored", async () => {
    const key = freshKey();
    const connection = new AbortController();
    const slow = slowHandler();
    const given = gate<AbortSignal>();
    const fetch = serving((request, run) => {
      given.open(request.signal);
      return slow.handler(request, run);
    });
    const first = fetch(post(key, { signal: connection.signal }));
    await slow.started.passed;
    connection.abort();
    expect((await given.passed).aborted).toBe(false);
    slow.finish(new Response("all of it"));
    await first;
    expect(await (await fetch(post(key))).text()).toBe("all of it");
    expect(slow.runs).toBe(1);
  });

  test("a client that has gone already begins nothing", async () => {
    const key = freshKey();
    const fetch = serving(() => expect.unreachable("nobody waits for it"));
    const response = await fetch(post(key, { signal: AbortSignal.abort(new Error("its own")) }));
    expect(await problemIn(response)).toEqual({ status: 499, code: "ABORTED" });
    await until(async () => (await recordsOf(at.store, key, [], "http")).every((record) => record === null));
  });

  test("the handler's signal aborts when its lease is lost", async () => {
    const key = freshKey();
    const time = ownTime();
    const client = clientOf(at.store, {}, { runtime: time });
    const fetch = stand(
      async (request, run) => {
        for (const link of client.links) link.fate = () => "refused";
        const aborted = new Promise((resolve) => request.signal.addEventListener("abort", resolve));
        await time.advance(30_000);
        await aborted;
        expect(run!.signal.aborted).toBe(true);
        expect(request.signal.reason).toBeInstanceOf(LeaseLostError);
        for (const link of client.links) link.fate = () => "delivered";
        return new Response("late, but nobody took over");
      },
      { redlock: client.redlock, lease: 30_000 },
    );
    expect(await (await fetch(post(key))).text()).toBe("late, but nobody took over");
  });

  test("the whole run is passed to waitUntil from its beginning, and the result stored before the answer", async () => {
    const key = freshKey();
    const background: Promise<unknown>[] = [];
    const slow = slowHandler();
    const fetch = serving(slow.handler, { waitUntil: (work) => background.push(work) });
    const answer = fetch(post(key));
    await slow.started.passed;
    const before = background.length;
    expect(before).toBeGreaterThan(0);
    const whole = Promise.all(background);
    let settled = false;
    void whole.then(() => {
      settled = true;
    });
    slow.finish(new Response("done"));
    expect(settled).toBe(false);
    await answer;
    expect((await recordsOf(at.store, key, [], "http"))[0]).toMatch(/^C1 /);
    await whole;
  });
});
